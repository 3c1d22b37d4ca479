// A router that answers with an error text, and carries the command out later: nobody who was told OK meanwhile is made a liar.
import assert from "node:assert/strict";
import { aCreate, gibibyte, inTime, testContext, testController } from "../../tests/fakes/controller_deps.ts";
import type { Mishap, StoreMethod } from "../../tests/fakes/mishap.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../tests/fakes/volume_calls.ts";
import { volumeIdFor } from "../volume/model/ids/ids.ts";
import { VolumeMemory } from "./records/memory.ts";
import { createVolume } from "./volumes/create.ts";
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
  const create = () => done(createVolume(deps, aCreate(name), context));
  await create();
  const refuseLate = (...methods: StoreMethod[]) => {
    for (const method of methods) store.mishap(method, refusedLate);
  };
  const runLate = () => {
    store.clearMishaps();
    store.runLate();
  };
  const calls = { ...volumeCalls({ ...made, deps }, id), create };
  return { ...made, deps, done, calls, refuseLate, runLate };
}

for (const remembers of [true, false]) {
  const how = remembers ? "remembered" : "read";

  Deno.test(`a withdrawal that was refused and runs late takes nothing from a node that was answered OK: ${how}`, async () => {
    const { calls, refuseLate, runLate } = await controller(remembers);
    await calls.publish();
    refuseLate("change");
    // Where it was tried without a read, the call reads and does it once more.
    if (remembers) await calls.unpublish();
    else await assert.rejects(calls.unpublish(), refusal("unavailable", /timed out/));
    await calls.publish();
    runLate();
    assert.deepEqual([calls.disk().exported, calls.holders()], [true, "a"]);
  });

  Deno.test(`an export that was refused and runs late brings back no holder that has left: ${how}`, async () => {
    const { store, calls, refuseLate, runLate } = await controller(remembers);
    refuseLate("exportUnseen", "change");
    await assert.rejects(calls.publish(), refusal("unavailable"));
    store.clearMishaps();
    await calls.unpublish();
    runLate();
    assert.deepEqual([calls.disk().exported, calls.holders()], [false, ""]);
  });

  Deno.test(`a removal that was refused and runs late takes no volume that was created again: ${how}`, async () => {
    const { store, calls, refuseLate, runLate } = await controller(remembers);
    refuseLate("removeUnseen", "remove");
    await assert.rejects(calls.remove(), refusal("unavailable"));
    store.clearMishaps();
    await calls.create();
    runLate();
    assert.equal(calls.holders(), "");
    assert.ok(store.allFiles.has(calls.disk().imagePath));
  });

  Deno.test(`a growth that was refused and runs late changes no size that was answered: ${how}`, async () => {
    const { store, calls, refuseLate, runLate } = await controller(remembers);
    refuseLate("growUnseen", "change");
    await assert.rejects(calls.expand(), refusal("unavailable"));
    store.clearMishaps();
    assert.equal(await calls.expand(1n), gibibyte);
    runLate();
    assert.equal(calls.disk().sizeBytes, gibibyte);
  });

  Deno.test(`a disk whose addition was refused and runs late is found by the next try: ${how}`, async () => {
    const { store, calls, refuseLate, runLate } = await controller(remembers);
    await calls.remove();
    refuseLate("addUnseen", "addAlone", "add");
    await assert.rejects(calls.create(), refusal("unavailable"));
    store.clearMishaps();
    await calls.create();
    const { comment } = calls.disk();
    runLate();
    assert.deepEqual([calls.disk().comment, calls.holders()], [comment, ""]);
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
