import assert from "node:assert/strict";
import type { VolumeCapability } from "../../src/csi/generated/csi/v1/VolumeCapability.ts";
import { hostIdentityOf } from "../../src/volume/model/host_identity.ts";
import { cost, create, publishRequest, state } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";

const shared: VolumeCapability = { block: {}, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" } };
const host = (nodeId: string) => hostIdentityOf(nodeId).hostNqn;
const nodes = ["--known-node", "node-1", "--known-node", "node-2", "--known-node", "node-3"];

/** A volume that two nodes hold; what it is exported as, and to whom. */
async function migrating(stack: Stack) {
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-one", { volumeCapabilities: [shared] });
  const publish = async (nodeId: string) => {
    const request = publishRequest(volumeId, nodeId, shared);
    return (await controller.call("ControllerPublishVolume", request)).publishContext["nqn"];
  };
  const first = await publish("node-1");
  assert.equal(await publish("node-2"), first);
  return {
    publish,
    nqn: first,
    unpublish: (nodeId: string) => controller.call("ControllerUnpublishVolume", { volumeId, nodeId }),
    access: async () => ((await state(stack)) as unknown as { access: readonly Access[] }).access,
  };
}

interface Access {
  readonly nqn: string;
  readonly hosts?: readonly string[];
}

Deno.test("the router lets in who stays, and not who leaves, under the same NQN", async () => {
  await using stack = await startStack({ told: { allowHost: "list" }, flags: nodes });
  const volume = await migrating(stack);
  assert.equal((await volume.access())[0]?.hosts, undefined);
  assert.ok(await cost(stack, () => volume.unpublish("node-1")) <= 2);
  const [after] = await volume.access();
  assert.deepEqual([after?.nqn, after?.hosts], [volume.nqn, [host("node-2")]]);
  assert.equal(await volume.publish("node-3"), volume.nqn);
  assert.deepEqual((await volume.access())[0]?.hosts, [host("node-2"), host("node-3")]);
  await volume.unpublish("node-2");
  await volume.unpublish("node-3");
  assert.deepEqual(await volume.access(), []);
  assert.notEqual(await volume.publish("node-1"), volume.nqn);
  assert.equal(
    (await volume.access())[0]?.hosts,
    undefined,
    "nobody is kept out by the list of an epoch that has ended",
  );
});

for (const allowHost of ["single", "ignored"] as const) {
  Deno.test(`who leaves is reported where the router's list is: ${allowHost}`, async () => {
    const simulator = { knobs: { allowHost } };
    await using stack = await startStack({ simulator, told: { allowHost }, flags: nodes });
    const volume = await migrating(stack);
    await volume.unpublish("node-1");
    assert.equal((await volume.access())[0]?.hosts, undefined);
    assert.match(stack.log.join("\n"), /the node that left is not fenced/);
    const metrics = await (await fetch(`${stack.driver.metricsUrl}/metrics`)).text();
    assert.match(metrics, /^rds_csi_unfenced_leavers_total\{backend="default"\} 1$/m);
  });
}
