// Disks and files that other people made, used as volumes through a static PersistentVolume.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { VolumeError } from "../../src/volume/errors.ts";
import { anAttachment, FakeClusterView } from "../fakes/cluster_view.ts";
import {
  changesNothing,
  cloneOf,
  cost,
  gibibyte,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../support/controller_calls.ts";
import type { Stack } from "../support/stack.ts";
import { growsOnline } from "../support/stack.ts";
import {
  addDisk,
  calls,
  disk,
  doImport,
  isStatic,
  recordOf,
  release,
  startWithFile,
} from "../support/static_disk.ts";

for (const name of ["ros-7.24", "xfs-pool"]) {
  Deno.test(`${name}: a disk that a PersistentVolume calls static lives as a volume does, and is given back`, async () => {
    const { simulator, reported } = growsOnline;
    await using scene = await startWithFile({ simulator: { profile: name, ...simulator }, reported });
    const { stack } = scene;
    await addDisk(stack);
    const before = await disk(stack);
    const { publish, unpublish, delete: remove } = calls(stack);
    const context = await publish();
    assert.equal(context["mayFormat"], "false");
    assert.equal(context["size"], String(gibibyte));
    const { record, before: note } = await recordOf(stack);
    assert.equal(note, "films ");
    assert.deepEqual(record.holders.map(({ nodeId }) => nodeId), ["node-1"]);
    assert.equal(record.blankEpoch, 0);
    await changesNothing(stack, async () => {
      assert.deepEqual(await publish(), context);
      await rejectsWith(status.FAILED_PRECONDITION, publish("node-2"), /another node holds it/);
      await rejectsWith(status.FAILED_PRECONDITION, remove(), /published/);
      const { entries } = await stack.clients.controller.call("ListVolumes", {});
      assert.deepEqual(entries.map(({ volume, status }) => [volume!.volumeId, status!.publishedNodeIds]), [
        ["data", ["node-1"]],
      ]);
      const sick = await stack.clients.controller.call("ControllerListVolumeHealth", {});
      assert.deepEqual(sick.entries, []);
      const { volumeHealth } = await stack.clients.controller.call("ControllerGetVolumeHealth", {
        volumeId: "data",
      });
      assert.deepEqual(volumeHealth!.healthStatuses, []);
    });
    const larger = { volumeId: "data", capacityRange: { requiredBytes: String(2n * gibibyte) } };
    await stack.clients.controller.call("ControllerExpandVolume", larger);
    await scene.assertIntact(2n * gibibyte);
    await unpublish();
    assert.deepEqual((await state(stack)).exports, []);
    await changesNothing(stack, async () => {
      await rejectsWith(status.FAILED_PRECONDITION, remove(), /it was imported.*nothing is removed.*Retain/);
      await rejectsWith(status.FAILED_PRECONDITION, snapshot(stack, "snap", "data"), /it was imported/);
      await rejectsWith(
        status.FAILED_PRECONDITION,
        cloneOf(stack, "pvc-clone", { volumeId: "data" }, { capacityRange: {} }),
        /it was imported/,
      );
    });
    assert.match((await release(stack)).out, /data is given back; its export is off/);
    const after = await disk(stack);
    assert.equal(after!["comment"], "films");
    assert.equal(after!["file-path"], before!["file-path"]);
    assert.match((await release(stack)).out, /had no record: nothing changed/);
    await scene.assertIntact(2n * gibibyte);
  });
}

Deno.test("the first publish of a static volume takes five commands, one after it three, and a held one two", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  await addDisk(stack);
  const { publish, unpublish } = calls(stack);
  assert.equal(await cost(stack, () => publish()), 5);
  assert.equal(await cost(stack, () => publish()), 2);
  assert.equal(await cost(stack, () => unpublish()), 1);
  assert.equal(await cost(stack, () => publish()), 3);
});

Deno.test("a disk whose export somebody has just turned off is not published while a node may still write through that export", async () => {
  await using scene = await startWithFile({ flags: ["--unexport-grace", "300s"] });
  const { stack } = scene;
  await addDisk(stack);
  const { publish } = calls(stack);
  await rejectsWith(status.UNAVAILABLE, publish(), /only a moment ago.*try again in \d+ s/);
  await rejectsWith(status.UNAVAILABLE, publish(), /only a moment ago/);
  assert.deepEqual((await state(stack)).exports, []);
});

Deno.test("the router mounts nothing in a disk that was imported", async () => {
  await using scene = await startWithFile();
  await addDisk(scene.stack, { "mount-filesystem": true });
  await calls(scene.stack).publish();
  assert.equal((await disk(scene.stack))!["mount-filesystem"], false);
});

Deno.test("a disk that got another slot while a node has it counts as detached only once its export is off, and never as deleted", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  await addDisk(stack);
  const { publish, unpublish } = calls(stack);
  await publish();
  await control(stack.simulator, "PATCH /disks/data", { slot: "films" });
  const deletion = () => stack.clients.controller.call("DeleteVolume", { volumeId: "data" });
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, unpublish(), /still exported.*slot=films/);
    await rejectsWith(status.FAILED_PRECONDITION, deletion(), /still exported.*slot=films/);
    // A disk that somebody makes in the slot is not that one.
    await addDisk(stack, { "file-path": "/storage-pool/images/other.img" });
    await rejectsWith(status.FAILED_PRECONDITION, unpublish(), /still exported.*slot=films/);
    await unpublish("node-2");
    await stack.clients.controller.call("ControllerUnpublishVolume", { volumeId: "never", nodeId: "node-1" });
    await control(stack.simulator, "POST /console", { command: '/disk remove [find where slot="data"]' });
    await control(stack.simulator, "POST /console", {
      command: '/file remove [find where name~"other[.]img"]',
    });
  });
  await control(stack.simulator, "PATCH /disks/films", { slot: "data" });
  await unpublish();
  assert.deepEqual((await state(stack)).exports, []);
  await control(stack.simulator, "PATCH /disks/data", { slot: "films" });
  await unpublish();
  await changesNothing(
    stack,
    () => rejectsWith(status.FAILED_PRECONDITION, deletion(), /another slot: .*slot=films/),
  );
});

/** States of a disk in use, and comments, that prevent an import; src/volume/rules/import_test.ts has the rest. */
const refusals: readonly (readonly [string, (stack: Stack) => Promise<void>, RegExp])[] = [
  [
    "an export that is on",
    (stack) =>
      addDisk(stack, { "nvme-tcp-export": true, "nvme-tcp-server-nqn": "nqn.2024-01.org.example:films" }),
    /nqn=nqn\.2024-01\.org\.example:films.*--exported-is-unused/,
  ],
  [
    "a mounted file system",
    (stack) => addDisk(stack, { "mount-point": "films" }),
    /its file system is mounted.*mount-filesystem=no/,
  ],
  ["a member of an array", (stack) => addDisk(stack, { "raid-master": "raid1" }), /member of an array/],
  ["a share", (stack) => addDisk(stack, { "nfs-sharing": true }), /shared over NFS.*nfs-sharing=no/],
  ["an iSCSI export", (stack) => addDisk(stack, { "iscsi-export": true }), /exported over iSCSI/],
  ["a disabled disk", (stack) => addDisk(stack, { disabled: true }), /it is disabled/],
  [
    "a mounted partition",
    async (stack) => {
      await addDisk(stack);
      await control(stack.simulator, "POST /disks", {
        slot: "data-part1",
        type: "partition",
        parent: "data",
        "mount-point": "part",
      });
    },
    /a disk is on it: disk=data-part1/,
  ],
  [
    "a file that is gone",
    async (stack) => {
      await addDisk(stack, { "file-path": "/storage-pool/images/gone.img" });
      stack.simulator.model.files.remove("storage-pool/images/gone.img");
    },
    /its file does not exist/,
  ],
  [
    "a program's comment",
    (stack) => addDisk(stack, { comment: '{"owner":"other-csi"}' }),
    /a program's record/,
  ],
  [
    "a part of a record",
    (stack) => addDisk(stack, { comment: "rds1 c=0a0b0c0d n=0a0b" }),
    /a part of a record/,
  ],
  ["a damaged record", (stack) => addDisk(stack, { comment: "{rds1 c=0a0b0c0d n=0a0b" }), /is damaged/],
];

for (const [what, arrange, text] of refusals) {
  Deno.test(`${what}: neither way imports the disk, and nothing changes`, async () => {
    await using scene = await startWithFile();
    const { stack } = scene;
    await arrange(stack);
    await changesNothing(stack, async () => {
      await rejectsWith(status.FAILED_PRECONDITION, calls(stack).publish(), text);
      await assert.rejects(
        doImport(stack, "data", "--kind", "ext4"),
        (error) => VolumeError.is(error, "precondition") && text.test(error.message),
      );
    });
    await scene.assertIntact();
  });
}

Deno.test("a disk without a record whose PersistentVolume says nothing is refused, and the error names both ways", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  await addDisk(stack);
  const { publish, unpublish } = calls(stack);
  await changesNothing(stack, async () => {
    const text = /carries no record.*rds-csi import data.*static: "true"/;
    await rejectsWith(status.FAILED_PRECONDITION, publish("node-1", {}), text);
    await rejectsWith(
      status.INVALID_ARGUMENT,
      publish("node-1", { volumeContext: { static: "yes" } }),
      /static="yes"/,
    );
    // Otherwise its VolumeAttachment would stay forever.
    await unpublish();
  });
});

Deno.test("a copy of an imported disk, or an imported disk that was given another file, is never published", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  await addDisk(stack);
  await doImport(stack, "data", "--kind", "ext4");
  const { comment } = (await disk(stack))!;
  await control(stack.simulator, "POST /files", {
    name: "/storage-pool/images/two.img",
    type: "file",
    size: Number(gibibyte),
  });
  await addDisk(stack, { slot: "copy", comment });
  const { controller } = stack.clients;
  const publish = (id: string) =>
    controller.call("ControllerPublishVolume", { ...publishRequest(id), ...isStatic });
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, publish("copy"), /uses a file of another name/);
    await rejectsWith(status.FAILED_PRECONDITION, publish("data"), /another disk uses its image/);
  });
  const { disks } = stack.simulator.model;
  disks.remove(disks.findBySlot("copy")!.id);
  disks.replace({ ...disks.findBySlot("data")!, filePath: "/storage-pool/images/two.img" });
  await changesNothing(
    stack,
    () => rejectsWith(status.FAILED_PRECONDITION, publish("data"), /uses a file of another name/),
  );
});

Deno.test("an imported disk that the router then mounts is not published", async () => {
  await using scene = await startWithFile();
  const { stack } = scene;
  await addDisk(stack);
  await doImport(stack, "data", "--kind", "ext4");
  const { disks } = stack.simulator.model;
  disks.replace({ ...disks.findBySlot("data")!, extra: { "iscsi-export": true } });
  await changesNothing(
    stack,
    () => rejectsWith(status.FAILED_PRECONDITION, calls(stack).publish(), /the router itself uses its disk/),
  );
});

Deno.test("a static volume whose record the router has lost gets an epoch after those that nodes know", async () => {
  const clusterView = new FakeClusterView();
  clusterView.attached = [anAttachment("data", "node-2", { epochCounter: 7 })];
  await using scene = await startWithFile({ clusterView });
  await addDisk(scene.stack);
  assert.match((await calls(scene.stack).publish())["epoch"]!, /^8-/);
});
