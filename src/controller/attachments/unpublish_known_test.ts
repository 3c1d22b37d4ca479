// Unpublishing by what the controller remembers of its last change: as safe as after reading, whatever came in between.
import assert from "node:assert/strict";
import {
  aPublish,
  inTime,
  testContext,
  testController,
  testParameters,
} from "../../../tests/fakes/controller_deps.ts";
import type { Mishap } from "../../../tests/fakes/mishap.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { nodeIdsOf, parseComment, type VolumeRecord } from "../../volume/model/record.ts";
import { VolumeMemory } from "../records/memory.ts";
import { deleteVolume } from "../volumes/delete.ts";
import { publishVolume } from "./publish.ts";
import { unpublishVolume } from "./unpublish.ts";

const context = testContext();
const id = "pvc-1";

/** A controller, alone on its router or not, that has published the volume to the node a. */
async function published(alone = true, unexportGraceMs = 0) {
  const made = testController({ unexportGraceMs });
  const { store, clock } = made;
  const shown: string[] = [];
  const projection = {
    ...made.deps.projection,
    show: (id: string, { holders }: VolumeRecord) => void shown.push(`${id} ${nodeIdsOf(holders).join()}`),
  };
  const deps = { ...made.deps, projection, memory: new VolumeMemory(made.deps.clock, alone) };
  store.put(aDisk(aRecord()));
  const publish = () => inTime(clock, publishVolume(deps, id, aPublish("a"), testParameters, context));
  await publish();
  store.takeCount();
  const unpublish = (nodeId = "a") => inTime(clock, unpublishVolume(deps, id, nodeId, context));
  const record = () => {
    const parsed = parseComment(store.disks.get(id)!.comment);
    return parsed.state === "record" ? parsed.comment.record : assert.fail(parsed.state);
  };
  const methods = () => store.calls.splice(0).map(({ method }) => method);
  const isOff = () => !store.disks.get(id)!.exported && record().holders.length === 0;
  return { ...made, deps, shown, publish, unpublish, record, methods, isOff };
}

Deno.test("unpublishVolume() takes one command for a volume that this controller has published", async () => {
  const { publish, unpublish, methods, isOff, shown } = await published();
  await unpublish();
  assert.deepEqual(methods(), ["change"]);
  assert.ok(isOff());
  assert.deepEqual(shown, ["pvc-1 a", "pvc-1 "], "as the cluster is shown");
  await publish();
  assert.deepEqual(methods(), ["exportUnseen"]);
  await unpublish();
  assert.deepEqual([methods(), isOff()], [["change"], true]);
});

Deno.test("unpublishVolume() reads first where nothing certain is remembered", async () => {
  const others = await published(false);
  await others.unpublish();
  assert.deepEqual(others.methods(), ["view", "change"]);
  const ledBefore = await published();
  ledBefore.deps.memory.known.forgetAll();
  await ledBefore.unpublish();
  assert.deepEqual(ledBefore.methods(), ["view", "change"]);
  const inDoubt = await published();
  inDoubt.deps.memory.inDoubt.remember(id, inDoubt.store.disks.get(id)!.comment);
  await inDoubt.unpublish();
  assert.deepEqual(inDoubt.methods(), ["view", "change"]);
  const after = await published();
  after.deps.memory.inDoubt.suspectOthers();
  await after.unpublish();
  assert.deepEqual(after.methods(), ["view", "change", "view"]);
  const whoever = await published();
  await whoever.unpublish("b");
  assert.deepEqual([whoever.methods(), whoever.isOff()], [["view"], false]);
  await whoever.unpublish("");
  assert.deepEqual(whoever.methods(), ["view", "change"]);
});

Deno.test("unpublishVolume() reads again where the record is another than is remembered, and keeps what it finds", async () => {
  const { store, unpublish, methods, isOff } = await published();
  const { comment } = store.disks.get(id)!;
  store.edit(id, { comment: `a note ${comment}` });
  await unpublish();
  assert.deepEqual(methods(), ["change", "view", "change"]);
  assert.ok(isOff());
  assert.match(store.disks.get(id)!.comment, /^a note \{/);
});

Deno.test("unpublishVolume() changes nothing of a volume that went on to others behind its back", async () => {
  for (const exported of [true, false]) {
    const { store, unpublish, methods } = await published();
    const epoch = { counter: 9, nonce: "0123abcd" };
    const { comment } = aDisk(aRecord({ epoch, holders: [aHolder("b")] }));
    store.edit(id, { comment, exported });
    await unpublish();
    assert.deepEqual(methods(), ["change", "view"]);
    assert.deepEqual([store.disks.get(id)!.comment, store.disks.get(id)!.exported], [comment, exported]);
  }
});

Deno.test("unpublishVolume() leaves a damaged record as it is, also one that looks as if the router had cut it", async () => {
  const { store, unpublish, methods } = await published();
  const damaged = store.disks.get(id)!.comment.slice(0, 20);
  store.edit(id, { comment: damaged });
  await assert.rejects(unpublish(), refusal("precondition", /damaged/));
  assert.deepEqual(methods(), ["change", "view"]);
  assert.equal(store.disks.get(id)!.comment, damaged);
});

Deno.test("unpublishVolume() answers OK for a volume that is provably gone, and not while it may come back", async () => {
  const gone = await published();
  gone.store.disks.delete(id);
  gone.store.allFiles.clear();
  await gone.unpublish();
  assert.deepEqual(gone.methods(), ["change", "view", "inventory"]);
  const hidden = await published();
  hidden.store.hidden.add(id);
  await assert.rejects(hidden.unpublish(), refusal("unavailable"));
  assert.equal(hidden.store.disks.get(id)!.exported, true);
  hidden.store.hidden.clear();
  await hidden.unpublish();
  assert.ok(hidden.isOff());
});

const mishaps: Readonly<Record<string, readonly [mishap: Mishap, commands: readonly string[]]>> = {
  "ran, end unknown": [{ runs: true, refusal: "interrupted" }, ["change"]],
  "did not run": [{ runs: false }, ["change", "view", "change"]],
  "refused": [{ refusal: "failure: no" }, ["change", "view", "change"]],
  "late": [{ late: true }, ["change", "view", "change"]],
};

for (const [name, [mishap, commands]] of Object.entries(mishaps)) {
  Deno.test(`unpublishVolume() without reading answers OK only for what it reads back: ${name}`, async () => {
    const { store, unpublish, methods, isOff, publish, record } = await published();
    store.mishap("change", mishap);
    await unpublish();
    assert.deepEqual(methods(), commands);
    assert.ok(isOff());
    await publish();
    const { epoch } = record();
    store.runLate();
    assert.deepEqual([store.disks.get(id)!.exported, record().epoch], [true, epoch], "nothing comes late");
  });
}

Deno.test("unpublishVolume() writes a withdrawal that the router made late once, and the grace counts from its read-back", async () => {
  const { store, clock, publish, unpublish, methods } = await published(true, 30_000);
  store.lingerMs = 30_000;
  store.mishap("change", { takesMs: 5_000 });
  await unpublish();
  assert.deepEqual(methods(), ["change"]);
  const startMs = clock.monotonicMs();
  await publish();
  assert.ok(clock.monotonicMs() - startMs >= 29_000);
  assert.deepEqual(store.violations, []);
});

Deno.test("a volume that is deleted is known no more", async () => {
  const { deps, unpublish } = await published();
  await unpublish();
  assert.notEqual(deps.memory.known.get(id), undefined);
  await deleteVolume(deps, id, context);
  assert.equal(deps.memory.known.get(id), undefined);
});

Deno.test("unpublishVolume() withdraws once more what is on again when it is read back", async () => {
  const { store, unpublish, methods, isOff } = await published();
  store.mishap("change", { after: () => store.edit(id, { exported: true }) });
  await unpublish();
  assert.deepEqual([methods(), isOff()], [["change", "view", "change"], true]);
});

Deno.test("unpublishVolume() whose end cannot be read fails, and reads when it is called again", async () => {
  for (const runs of [true, false]) {
    const { store, unpublish, methods, isOff } = await published();
    store.mishap("change", { runs, unreadable: true });
    await assert.rejects(unpublish(), refusal("unavailable"));
    assert.deepEqual(methods(), ["change"]);
    await unpublish();
    assert.equal(methods()[0], "view");
    assert.ok(isOff());
  }
});
