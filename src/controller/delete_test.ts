import assert from "node:assert/strict";
import { inTime, testContext, testController } from "../../tests/fakes/controller_world.ts";
import { aDisk, aHolder, aRecord, testCluster } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import type { Mishap } from "../../tests/fakes/volume_store.ts";
import type { VolumeErrorKind } from "../volume/errors.ts";
import { deleteVolume } from "./delete.ts";
import type { ControllerSettings } from "./world.ts";

const context = testContext();
const epoch = { counter: 1, nonce: "0123abcd" };
const disk = aDisk(aRecord());
const { id, imagePath } = disk;

function controller(settings: Partial<ControllerSettings> = {}) {
  const controller = testController(settings);
  controller.store.put(disk);
  return controller;
}

Deno.test("deleteVolume() removes disk and image in two commands, and is done in one when they are gone", async () => {
  const { world, store } = controller();
  await deleteVolume(world, id, context);
  assert.deepEqual(store.calls.splice(0).map((call) => call.method), ["view", "remove"]);
  assert.deepEqual([store.disks.size, store.files.size], [0, 0]);
  await deleteVolume(world, id, context);
  assert.equal(store.takeCount(), 1);
});

Deno.test("deleteVolume() ends what an earlier try left between disk and image", async () => {
  const { world, store } = controller();
  store.mishap("remove", { runs: "half" });
  await assert.rejects(deleteVolume(world, id, context), refusal("unavailable", /the image is still there/));
  assert.deepEqual([store.disks.size, store.files.size], [0, 1]);
  await deleteVolume(world, id, context);
  assert.equal(store.files.size, 0);
});

Deno.test("deleteVolume() looks for a left image in every allowed folder and takes only its own", async () => {
  const { world, store } = testController({ basePaths: ["/pool/csi", "/pool/more"] });
  const own = [`/pool/csi/${id}.${testCluster}.img`, `/pool/more/${id}.${testCluster}.img`];
  const others = [
    `/pool/csi/${id}.ffffffff.img`,
    `/pool/csi/${id}.img`,
    `/pool/other/${id}.${testCluster}.img`,
  ];
  for (const path of [...own, ...others]) store.putFile(path);
  await deleteVolume(world, id, context);
  assert.deepEqual([...store.files.keys()], others);
});

Deno.test("deleteVolume() removes no file that it did not ask about", async () => {
  const { world, store } = testController();
  store.putFile("/pool/csi/precious.img");
  const look = store.view.bind(store);
  store.view = async (...asked) => {
    const view = await look(...asked);
    return { ...view, files: [...view.files, ...store.files.values()] };
  };
  await deleteVolume(world, id, context);
  assert.ok(store.files.has("/pool/csi/precious.img"));
});

Deno.test("deleteVolume() refuses a published volume and names the holder", async () => {
  const { world, store } = testController();
  store.put(aDisk(aRecord({ epoch, holders: [aHolder("a"), aHolder("b")] })));
  const before = store.snapshot();
  await assert.rejects(deleteVolume(world, id, context), refusal("precondition", /published.*node=a, b/));
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("deleteVolume() never touches a file that another disk uses", async () => {
  for (const present of [true, false]) {
    const { world, store } = controller();
    store.put({ ...disk, id: "other" });
    if (!present) store.disks.delete(id);
    const before = store.snapshot();
    await assert.rejects(deleteVolume(world, id, context), refusal("precondition", /disk=other/));
    assert.deepEqual(store.snapshot(), before);
  }
});

Deno.test("deleteVolume() leaves a file that another disk began to use in between", async () => {
  const { world, store } = controller();
  store.mishap("remove", { before: () => store.put({ ...disk, id: "other" }) });
  await assert.rejects(deleteVolume(world, id, context), refusal("unavailable", /the image is still there/));
  assert.ok(store.files.has(imagePath));
});

Deno.test("deleteVolume() refuses a disk of its own whose image has another name", async () => {
  for (
    const path of [
      "/pool/csi/precious.img",
      `/pool/csi/${id}.ffffffff.img`,
      `/pool/x${id}.${testCluster}.img`,
    ]
  ) {
    const { world, store } = testController();
    store.put({ ...disk, imagePath: path });
    await assert.rejects(deleteVolume(world, id, context), refusal("precondition", /a file of another name/));
    assert.deepEqual([store.disks.size, store.files.size], [1, 1]);
  }
});

Deno.test("deleteVolume() believes what is read back, however the command ended", async () => {
  const cases: [string, Mishap, VolumeErrorKind | undefined][] = [
    ["ran, end unknown", { runs: true, refusal: "interrupted" }, undefined],
    ["did not run", { runs: false }, "unavailable"],
    ["refused", { refusal: "could not unmount, stop using it first" }, "unavailable"],
    ["ran, unreadable", { unreadable: true }, "unavailable"],
    ["did not run, unreadable", { runs: false, unreadable: true }, "unavailable"],
  ];
  for (const [name, mishap, kind] of cases) {
    const { world, store } = controller();
    store.mishap("remove", mishap);
    const call = deleteVolume(world, id, context);
    await (kind === undefined ? call : assert.rejects(call, refusal(kind), name));
    await deleteVolume(world, id, context);
    assert.deepEqual([store.disks.size, store.files.size], [0, 0], name);
  }
});

Deno.test("deleteVolume() passes on what the router answered", async () => {
  const { world, store } = controller();
  store.mishap("remove", { refusal: "could not unmount" });
  await assert.rejects(
    deleteVolume(world, id, context),
    refusal("unavailable", /answered "could not unmount"/),
  );
});

Deno.test("deleteVolume() does not remove a volume that was published in between", async () => {
  const { world, store } = controller();
  const published = aDisk(aRecord({ epoch, holders: [aHolder("a")] }));
  store.mishap("remove", { before: () => store.put(published) });
  await assert.rejects(deleteVolume(world, id, context), refusal("busy", /changed at the same time/));
  assert.deepEqual(store.disks.get(id), published);
  assert.ok(store.files.has(imagePath));
});

Deno.test("deleteVolume() does not call a volume gone while that proves nothing", async () => {
  for (const trouble of ["young", "unmounted"] as const) {
    const { world, store } = controller();
    store.hidden.add(id);
    if (trouble === "young") store.reboot();
    else store.pools = [];
    await assert.rejects(deleteVolume(world, id, context), refusal("unavailable"), trouble);
    assert.deepEqual([store.disks.size, store.files.size], [1, 1]);
  }
});

Deno.test("deleteVolume() does not call an image gone whose pool went away with it", async () => {
  const { world, store } = controller();
  store.mishap("remove", {
    runs: "half",
    after: () => {
      store.pools = [];
    },
  });
  await assert.rejects(deleteVolume(world, id, context), refusal("unavailable", /not mounted/));
});

Deno.test("deleteVolume() withdraws an export that nobody holds and waits out the grace", async () => {
  const { world, store, clock } = testController();
  store.lingerMs = 10_000;
  store.put(aDisk(aRecord({ epoch }), { exported: true }));
  await inTime(clock, deleteVolume(world, id, context));
  assert.deepEqual([store.disks.size, store.files.size, store.violations], [0, 0, []]);
  assert.deepEqual(store.calls.map((call) => call.method), ["view", "change", "remove"]);
});

Deno.test("deleteVolume() says at once that the grace outlasts the call", async () => {
  const { world, store, clock } = testController();
  store.put(aDisk(aRecord({ epoch, withdrawnAtSeconds: clock.now() / 1000 - 1 })));
  const short = testContext({ deadlineMs: clock.now() + 5_000 });
  await assert.rejects(deleteVolume(world, id, short), refusal("unavailable", /try again in 10 s/));
  assert.deepEqual([store.disks.size, store.calls.length, clock.waiting], [1, 1, 0]);
});
