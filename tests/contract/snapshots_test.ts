// Snapshots through gRPC and SSH, on a pool that has subvolumes and on one that has none.
import assert from "node:assert/strict";
import { create } from "../support/controller_calls.ts";
import { startStack } from "../support/stack.ts";

for (const profile of ["ros-7.24", "xfs-pool"]) {
  Deno.test(`a snapshot is made, found, made into a volume, listed and deleted on ${profile}`, async () => {
    await using stack = await startStack({ simulator: { profile }, probed: true });
    const { controller } = stack.clients;
    const sourceVolumeId = await create(stack, "pvc-source");
    const request = { name: "a snapshot", sourceVolumeId };
    const { snapshot } = await controller.call("CreateSnapshot", request);
    assert.equal(snapshot!.readyToUse, true);
    assert.deepEqual((await controller.call("CreateSnapshot", request)).snapshot, snapshot);
    const { snapshotId } = snapshot!;
    assert.deepEqual((await controller.call("GetSnapshot", { snapshotId })).snapshot, snapshot);
    assert.deepEqual((await controller.call("ListSnapshots", {})).entries, [{ snapshot }]);
    const restored = await create(stack, "pvc-restored", {
      volumeContentSource: { snapshot: { snapshotId } },
    });
    for (const volumeId of [sourceVolumeId, restored]) await controller.call("DeleteVolume", { volumeId });
    await controller.call("DeleteSnapshot", { snapshotId });
    const { files } = stack.simulator.model;
    assert.deepEqual(files.list().filter(({ kind }) => kind === "file"), []);
  });
}
