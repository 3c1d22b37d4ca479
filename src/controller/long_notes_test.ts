// A note in a disk's comment that leaves the record no room: nothing that makes the comment no longer is kept from anybody.
import assert from "node:assert/strict";
import {
  aPublish,
  gibibyte,
  inTime,
  testContext,
  testController,
  testParameters,
} from "../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { maxCommentBytes, nodeIdsOf, parseComment, type VolumeRecord } from "../volume/model/record.ts";
import { publishVolume } from "./attachments/publish.ts";
import { unpublishVolume, withdrawVolume } from "./attachments/unpublish.ts";
import { VolumeMemory } from "./records/memory.ts";
import { expandVolume } from "./volumes/expand.ts";

const context = testContext();
const id = "pvc-1";
const note = `${"a person's long note ".repeat(10)} `;

/** A volume with a note that the router keeps, although the comment is longer than what is written elsewhere. */
function noted(over: Partial<VolumeRecord>, remembers = false) {
  const made = testController({ unexportGraceMs: 0 });
  const { store, clock } = made;
  const deps = { ...made.deps, memory: new VolumeMemory(made.deps.clock, remembers) };
  const epoch = { counter: 9, nonce: "0a0b0c0d" };
  const record = aRecord({ epoch, blankEpoch: 0, ...over });
  const disk = aDisk(record);
  const exportNqn = `nqn.2000-02.com.mikrotik:${id}:9-0a0b0c0d`;
  const exported = record.holders.length > 0;
  store.put({ ...disk, comment: note + disk.comment, exported, exportNqn, exportPort: 4420 });
  assert.ok(store.disks.get(id)!.comment.length > maxCommentBytes);
  if (remembers) deps.memory.known.remember(store.disks.get(id)!);
  const done = <T>(work: Promise<T>) => inTime(clock, work);
  const holders = () => {
    const { comment } = store.disks.get(id)!;
    assert.ok(comment.startsWith(note));
    const parsed = parseComment(comment);
    return parsed.state === "record" ? nodeIdsOf(parsed.comment.record.holders) : assert.fail(parsed.state);
  };
  return { ...made, deps, done, holders };
}

for (const remembers of [false, true]) {
  const how = remembers ? "remembered" : "read";

  Deno.test(`a long note keeps no volume on a node that is lost: ${how}`, async () => {
    const { deps, store, done, holders } = noted({ holders: [aHolder("n1")] }, remembers);
    await done(unpublishVolume(deps, id, "n1", context));
    assert.deepEqual([store.disks.get(id)!.exported, holders()], [false, []]);
  });
}

Deno.test("a long note keeps no volume from being withdrawn by a person's word", async () => {
  const { deps, store, done, holders } = noted({ holders: [aHolder("n1")] });
  await done(withdrawVolume(deps, id, context));
  assert.deepEqual([store.disks.get(id)!.exported, holders()], [false, []]);
});

Deno.test("a long note keeps no node from leaving a shared volume", async () => {
  const writers = ["n1", "n2"].map((node) => aHolder(node, { mode: "multi-node-multi-writer" }));
  const { deps, store, done, holders } = noted({ capabilities: "bp", holders: writers });
  await done(unpublishVolume(deps, id, "n1", context));
  assert.deepEqual([store.disks.get(id)!.exported, holders()], [true, ["n2"]]);
});

Deno.test("a record without room refuses a publish as what a person has to resolve, and says so on its own event", async () => {
  const { deps, events, done } = noted({});
  const publish = publishVolume(deps, id, aPublish("n1"), testParameters, context);
  await assert.rejects(done(publish), refusal("precondition", /would not fit.*shorter note/));
  assert.deepEqual(events.map(({ kind }) => kind), ["attach-refused"]);
});

Deno.test("a record without room refuses an expansion, and no event says that the pool is full", async () => {
  const { deps, events, store, done } = noted({});
  const range = { requiredBytes: 2n * gibibyte, limitBytes: 0n };
  await assert.rejects(
    done(expandVolume(deps, id, range, context)),
    refusal("precondition", /would not fit/),
  );
  assert.deepEqual([events, store.disks.get(id)!.sizeBytes], [[], gibibyte]);
});
