import assert from "node:assert/strict";
import { testController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord } from "../../../tests/fakes/records.ts";
import { showAtStart } from "./loop.ts";

function scene() {
  const shown: string[] = [];
  const controller = testController();
  const deps = {
    ...controller.deps,
    projection: {
      show() {},
      beforeRead: () => 7,
      showAll: (reading: number, volumes: readonly { stored: { id: string } }[]) =>
        void shown.push(...volumes.map(({ stored }) => `${stored.id} as of ${reading}`)),
    },
  };
  const epoch = { counter: 1, nonce: "0a0b0c0d" };
  controller.store.disks.set(
    "pvc-1",
    aDisk(aRecord({ holders: [aHolder("node-1")], epoch }), { id: "pvc-1" }),
  );
  controller.store.disks.set("pvc-2", aDisk(aRecord({ cluster: "ffffffff" }), { id: "pvc-2" }));
  return { ...controller, deps, shown };
}

Deno.test("showAtStart() shows the volumes of this cluster once its objects are read", async () => {
  const { deps, shown } = scene();
  let read = 0;
  await showAtStart(deps, () => Promise.resolve(void read++), new AbortController().signal);
  assert.equal(read, 1);
  assert.deepEqual(shown, ["pvc-1 as of 7"]);
});

Deno.test("showAtStart() tries again until the cluster answers, and says so once", async () => {
  const { deps, clock, notes, shown } = scene();
  let read = 0;
  const readObjects = () => ++read < 4 ? Promise.reject(new Error("nobody there")) : Promise.resolve();
  const done = showAtStart(deps, readObjects, new AbortController().signal);
  await clock.advance(60_000);
  await done;
  assert.equal(read, 4);
  assert.equal(notes.length, 1);
  assert.equal(shown.length, 1);
});

Deno.test("showAtStart() ends with its signal", async () => {
  const { deps, clock, shown } = scene();
  const stop = new AbortController();
  const done = showAtStart(deps, () => Promise.reject(new Error("nobody there")), stop.signal);
  await clock.advance(1_000);
  stop.abort(new Error("stopped"));
  await done;
  assert.deepEqual(shown, []);
});
