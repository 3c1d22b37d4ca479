// A router that answers with an error text, and carries the command out later: nobody who was told OK meanwhile is made a liar.
import assert from "node:assert/strict";
import {
  aCreate,
  aPublish,
  gibibyte,
  inTime,
  testContext,
  testController,
  testParameters,
} from "../../tests/fakes/controller_deps.ts";
import type { Mishap, StoreMethod } from "../../tests/fakes/mishap.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { volumeIdFor } from "../volume/model/ids/ids.ts";
import { nodeIdsOf, parseComment } from "../volume/model/record.ts";
import { publishVolume } from "./attachments/publish.ts";
import { unpublishVolume } from "./attachments/unpublish.ts";
import { VolumeMemory } from "./records/memory.ts";
import { createVolume } from "./volumes/create.ts";
import { deleteVolume } from "./volumes/delete.ts";
import { expandVolume } from "./volumes/expand.ts";
import { createSnapshot } from "./snapshots/create.ts";
import { deleteSnapshot } from "./snapshots/delete.ts";

const context = testContext();
const refusedLate: Mishap = { refusal: "action timed out", late: true };
const name = "a";
const id = volumeIdFor(name);

/** A controller that remembers its volumes or does not, with one volume; its next command of a kind is refused, and runs late. */
async function controller(remembers: boolean) {
  const made = testController({ unexportGraceMs: 0 }, 1, undefined, remembers);
  const { store, clock } = made;
  const deps = { ...made.deps, memory: new VolumeMemory(made.deps.clock, remembers) };
  const done = <T>(work: Promise<T>) => inTime(clock, work);
  const calls = {
    create: () => done(createVolume(deps, aCreate(name), context)),
    publish: (node = "n1") => done(publishVolume(deps, id, aPublish(node), testParameters, context)),
    unpublish: (node = "n1") => done(unpublishVolume(deps, id, node, context)),
    delete: () => done(deleteVolume(deps, id, context)),
    expand: (sizeBytes: bigint) =>
      done(expandVolume(deps, id, { requiredBytes: sizeBytes, limitBytes: 0n }, context)),
  };
  await calls.create();
  const refuseLate = (...methods: StoreMethod[]) => {
    for (const method of methods) store.mishap(method, refusedLate);
  };
  const runLate = () => {
    store.clearMishaps();
    store.runLate();
  };
  const holders = () => {
    const parsed = parseComment(store.disks.get(id)?.comment ?? "");
    return parsed.state === "record" ? nodeIdsOf(parsed.comment.record.holders) : undefined;
  };
  return { ...made, deps, done, calls, refuseLate, runLate, holders };
}

for (const remembers of [true, false]) {
  const how = remembers ? "remembered" : "read";

  Deno.test(`a withdrawal that was refused and runs late takes nothing from a node that was answered OK: ${how}`, async () => {
    const { store, calls, refuseLate, runLate, holders } = await controller(remembers);
    await calls.publish();
    refuseLate("change");
    // Where it was tried without a read, the call reads and does it once more.
    if (remembers) await calls.unpublish();
    else await assert.rejects(calls.unpublish(), refusal("unavailable", /timed out/));
    await calls.publish();
    runLate();
    assert.deepEqual([store.disks.get(id)!.exported, holders()], [true, ["n1"]]);
  });

  Deno.test(`an export that was refused and runs late brings back no holder that has left: ${how}`, async () => {
    const { store, calls, refuseLate, runLate, holders } = await controller(remembers);
    refuseLate("exportUnseen", "change");
    await assert.rejects(calls.publish(), refusal("unavailable"));
    store.clearMishaps();
    await calls.unpublish();
    runLate();
    assert.deepEqual([store.disks.get(id)!.exported, holders()], [false, []]);
  });

  Deno.test(`a removal that was refused and runs late takes no volume that was created again: ${how}`, async () => {
    const { store, calls, refuseLate, runLate, holders } = await controller(remembers);
    refuseLate("removeUnseen", "remove");
    await assert.rejects(calls.delete(), refusal("unavailable"));
    store.clearMishaps();
    await calls.create();
    runLate();
    assert.deepEqual(holders(), []);
    assert.ok(store.allFiles.has(store.disks.get(id)!.imagePath));
  });

  Deno.test(`a growth that was refused and runs late changes no size that was answered: ${how}`, async () => {
    const { store, calls, refuseLate, runLate } = await controller(remembers);
    refuseLate("growUnseen", "change");
    await assert.rejects(calls.expand(2n * gibibyte), refusal("unavailable"));
    store.clearMishaps();
    assert.equal(await calls.expand(gibibyte), gibibyte);
    runLate();
    assert.equal(store.disks.get(id)!.sizeBytes, gibibyte);
  });

  Deno.test(`a disk whose addition was refused and runs late is found by the next try: ${how}`, async () => {
    const { store, calls, refuseLate, runLate, holders } = await controller(remembers);
    await calls.delete();
    refuseLate("addUnseen", "addAlone", "add");
    await assert.rejects(calls.create(), refusal("unavailable"));
    store.clearMishaps();
    await calls.create();
    const { comment } = store.disks.get(id)!;
    runLate();
    assert.deepEqual([store.disks.get(id)!.comment, holders()], [comment, []]);
    assert.deepEqual(store.violations, []);
  });

  Deno.test(`a snapshot whose removal was refused and runs late is answered by nobody: ${how}`, async () => {
    const { store, deps, done, refuseLate, runLate } = await controller(remembers);
    const create = () => done(createSnapshot(deps, { name: "s", source: id }, context));
    const made = await create();
    refuseLate("removeImage");
    await assert.rejects(done(deleteSnapshot(deps, made.id, context)), refusal("unavailable"));
    await assert.rejects(create(), refusal("busy", /may still happen/));
    runLate();
    assert.ok(!store.allFiles.has(made.imagePath));
  });
}
