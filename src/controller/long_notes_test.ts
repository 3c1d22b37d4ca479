// A note in a disk's comment that leaves the record no room: nothing that makes the comment no longer is kept from anybody.
import assert from "node:assert/strict";
import { gibibyte, inTime, testContext, testController } from "../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../tests/fakes/volume_calls.ts";
import { maxCommentBytes, type VolumeRecord } from "../volume/model/record.ts";
import { withdrawVolume } from "./attachments/unpublish.ts";
import { VolumeMemory } from "./records/memory.ts";

const id = "pvc-1";
const note = `${"a person's long note ".repeat(10)} `;

/** A volume with a note that the router keeps, although the comment is longer than what is written elsewhere. */
function noted(over: Partial<VolumeRecord>, remembers = false) {
  const made = testController({ unexportGraceMs: 0 });
  const { store } = made;
  const deps = { ...made.deps, memory: new VolumeMemory(made.deps.clock, remembers) };
  const epoch = { counter: 9, nonce: "0a0b0c0d" };
  const record = aRecord({ epoch, blankEpoch: 0, ...over });
  const disk = aDisk(record);
  const exportNqn = `nqn.2000-02.com.mikrotik:${id}:9-0a0b0c0d`;
  const exported = record.holders.length > 0;
  store.put({ ...disk, comment: note + disk.comment, exported, exportNqn, exportPort: 4420 });
  assert.ok(store.disks.get(id)!.comment.length > maxCommentBytes);
  if (remembers) deps.memory.known.remember(store.disks.get(id)!);
  const calls = volumeCalls({ ...made, deps });
  const holders = () => {
    assert.ok(calls.disk().comment.startsWith(note));
    return calls.holders();
  };
  return { ...made, ...calls, deps, holders };
}

for (const remembers of [false, true]) {
  const how = remembers ? "remembered" : "read";

  Deno.test(`a long note keeps no volume on a node that is lost: ${how}`, async () => {
    const { unpublish, disk, holders } = noted({ holders: [aHolder("n1")] }, remembers);
    await unpublish("n1");
    assert.deepEqual([disk().exported, holders()], [false, ""]);
  });
}

Deno.test("a long note keeps no volume from being withdrawn by a person's word", async () => {
  const { deps, clock, disk, holders } = noted({ holders: [aHolder("n1")] });
  await inTime(clock, withdrawVolume(deps, id, testContext()));
  assert.deepEqual([disk().exported, holders()], [false, ""]);
});

Deno.test("a long note keeps no node from leaving a shared volume", async () => {
  const writers = ["n1", "n2"].map((node) => aHolder(node, { mode: "multi-node-multi-writer" }));
  const { unpublish, disk, holders } = noted({ capabilities: "bp", holders: writers });
  await unpublish("n1");
  assert.deepEqual([disk().exported, holders()], [true, "n2"]);
});

Deno.test("a record without room refuses a publish as what a person has to resolve, and says so on its own event", async () => {
  const { publish, events } = noted({});
  await assert.rejects(publish("n1"), refusal("precondition", /would not fit.*shorter note/));
  assert.deepEqual(events.map(({ kind }) => kind), ["attach-refused"]);
});

Deno.test("a record without room refuses an expansion, and no event says that the pool is full", async () => {
  const { expand, events, disk } = noted({});
  await assert.rejects(expand(), refusal("precondition", /would not fit/));
  assert.deepEqual([events, disk().sizeBytes], [[], gibibyte]);
});
