// A drive of the pool's Btrfs that the router mounts as well, as it does with each one that is not told otherwise. What
// needs the label is refused with the remedy, nothing becomes a plain file in silence, and all works again afterwards.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import {
  changesNothing,
  cloneOf,
  create,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";

const remedy =
  /Cannot use the subvolumes of the pool because .*pool=storage-pool disk=nvme9.* set mount-filesystem=no on nvme9/;

async function addDrive(stack: Stack, filesystemUuid: string): Promise<void> {
  await control(stack.simulator, "PATCH /disks/storage-pool", { "fs-uuid": "40437dbc" });
  const drive = { slot: "nvme9", size: 5, "fs-label": "storage-pool-fs", "fs-uuid": filesystemUuid };
  await control(stack.simulator, "POST /disks", drive);
}

for (const [what, uuid] of [["a drive of the pool", "40437dbc"], ["another file system", "5f0e7a11"]]) {
  Deno.test(`while ${what} is mounted under the pool's label, subvolumes are refused with the remedy`, async () => {
    await using stack = await startStack();
    const { controller } = stack.clients;
    const volumeId = await create(stack, "pvc-source");
    const { snapshotId } = await snapshot(stack, "snap-before", volumeId);
    await addDrive(stack, uuid!);
    await changesNothing(stack, async () => {
      await rejectsWith(status.UNAVAILABLE, snapshot(stack, "snap-new", volumeId), remedy);
      await rejectsWith(status.UNAVAILABLE, cloneOf(stack, "pvc-clone", { volumeId }), remedy);
      await rejectsWith(status.UNAVAILABLE, cloneOf(stack, "pvc-restored", { snapshotId }), remedy);
      await rejectsWith(status.UNAVAILABLE, controller.call("DeleteSnapshot", { snapshotId }), remedy);
      await rejectsWith(status.UNAVAILABLE, controller.call("DeleteVolume", { volumeId }), remedy);
    });
    await controller.call("ControllerPublishVolume", publishRequest(volumeId));
    await controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
    await control(stack.simulator, "POST /console", { command: "/disk/set nvme9 mount-filesystem=no" });
    await snapshot(stack, "snap-new", volumeId);
    await controller.call("DeleteVolume", { volumeId });
  });

  Deno.test(`while ${what} is mounted under the pool's label, no volume becomes a plain file`, async () => {
    await using stack = await startStack();
    await addDrive(stack, uuid!);
    await changesNothing(
      stack,
      () => rejectsWith(status.UNAVAILABLE, create(stack, "pvc-new"), remedy),
    );
    await control(stack.simulator, "POST /console", { command: "/disk/set nvme9 mount-filesystem=no" });
    await create(stack, "pvc-new");
    const images = (await state(stack)).files.map(({ name }) => name).filter((name) => name.endsWith(".img"));
    assert.ok(images.length === 1 && images[0]!.endsWith("/disk.img"), images.join());
  });
}
