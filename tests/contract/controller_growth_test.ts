// Growth of volumes in use, on a simulated router that shows a new size only after the export was off.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { createRequest, gibibyte, publishRequest, rejectsWith } from "../support/controller_calls.ts";
import { growsByToggle, type Stack, startStack } from "../support/stack.ts";

const wanted = 2n * gibibyte;

/** A volume of a StorageClass with this device layer, published to a node. */
async function inUse(stack: Stack, deviceLayer: string) {
  const { controller } = stack.clients;
  const { volume } = await controller.call(
    "CreateVolume",
    createRequest("v", { parameters: { deviceLayer } }),
  );
  const { volumeId, volumeContext } = volume!;
  const { publishContext } = await controller.call("ControllerPublishVolume", {
    ...publishRequest(volumeId),
    volumeContext,
  });
  const shown = () => {
    const disk = stack.simulator.model.disks.list().find(({ slot }) => slot === volumeId)!;
    return { bytes: disk.attachedBytes, exported: disk.exported, nqn: disk.nqn };
  };
  const expand = () =>
    controller.call("ControllerExpandVolume", {
      volumeId,
      capacityRange: { requiredBytes: String(wanted) },
    });
  const unpublish = () => controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
  return { publishContext, shown, expand, unpublish };
}

Deno.test("a volume in use grows by a toggle of its export where its nodes have the device layer", async () => {
  await using stack = await startStack(growsByToggle);
  const { publishContext: { nqn, layer }, shown, expand } = await inUse(stack, "multipath");
  assert.equal(layer, "true");
  const before = await stack.count();
  assert.equal((await expand()).capacityBytes, String(wanted));
  assert.equal((await stack.count()).execs - before.execs, 2);
  assert.deepEqual(shown(), { bytes: wanted, exported: true, nqn });
});

for (const deviceLayer of ["auto", "none"]) {
  Deno.test(`a volume in use does not grow where the device layer is ${deviceLayer}, until nobody uses it`, async () => {
    await using stack = await startStack(growsByToggle);
    const { publishContext: { nqn }, shown, expand, unpublish } = await inUse(stack, deviceLayer);
    await rejectsWith(status.FAILED_PRECONDITION, expand(), /only while it is not exported/);
    assert.deepEqual(shown(), { bytes: gibibyte, exported: true, nqn });
    await unpublish();
    await expand();
    assert.equal(shown().bytes, wanted);
  });
}
