// The controller on unusual routers: RouterOS before 7.21, where no node can be fenced, and routers that cut records, grow
// nothing, or have a list of hosts. contract/matrix.ts tests the controller on all other kinds.
import assert from "node:assert/strict";
import { formatProfile } from "../../src/router_profile/profile.ts";
import type { VolumeCapability } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";
import { getProfile } from "../../src/simulator/profile.ts";
import { nvmeHostSide } from "../../src/cli/doctor/doctor.ts";
import { hostIdentityOf } from "../../src/volume/model/host/identity.ts";
import { status } from "@grpc/grpc-js";
import {
  changesNothing,
  cloneOf,
  cost,
  create,
  gibibyte,
  publishRequest,
  rejectsWith,
  state,
} from "../support/controller_calls.ts";
import { growsOnline, type Stack, startStack } from "../support/stack.ts";

const twice = { capacityRange: { requiredBytes: String(2n * gibibyte) } };

function expand({ clients }: Stack, volumeId: string) {
  return clients.controller.call("ControllerExpandVolume", { volumeId, ...twice });
}

function publish({ clients }: Pick<Stack, "clients">, volumeId: string, nodeId = "node-1") {
  return clients.controller.call("ControllerPublishVolume", publishRequest(volumeId, nodeId));
}

function unpublish({ clients }: Pick<Stack, "clients">, volumeId: string, nodeId = "node-1") {
  return clients.controller.call("ControllerUnpublishVolume", { volumeId, nodeId });
}

async function diskOf(stack: Stack, slot: string): Promise<Readonly<Record<string, unknown>>> {
  return (await state(stack)).disks.find((disk) => disk.slot === slot)!;
}

Deno.test("the driver does nothing on RouterOS before 7.21, where no node could be fenced", async () => {
  const profile = { ...getProfile("ros-7.21"), version: "7.20.8 (long-term)" };
  await using stack = await startStack({ simulator: { profile } });
  const { controller } = stack.clients;
  const volumeId = "pvc-1";
  const calls: readonly (() => Promise<unknown>)[] = [
    () => create(stack, "pvc-old"),
    () => publish(stack, volumeId),
    () => unpublish(stack, volumeId),
    () => controller.call("DeleteVolume", { volumeId }),
    () => controller.call("ListVolumes", {}),
  ];
  await changesNothing(stack, async () => {
    for (const call of calls) {
      await rejectsWith(status.FAILED_PRECONDITION, call(), /needed=7\.21; upgrade it/);
    }
  });
});

Deno.test("a router that cuts a holder's record gives no volume to a node: the record is put back, and the export is off", async () => {
  await using stack = await startStack({ simulator: { behaviours: { maxComment: 90 } } });
  const id = await create(stack, "pvc-short");
  const before = (await diskOf(stack, id))["comment"];
  await rejectsWith(status.FAILED_PRECONDITION, publish(stack, id), /keeps only 90 bytes/);
  const { comment, ...disk } = await diskOf(stack, id);
  assert.deepEqual([comment, disk["nvme-tcp-export"]], [before, false]);
  assert.deepEqual(stack.simulator.model.exports.list(), []);
  await stack.clients.controller.call("DeleteVolume", { volumeId: id });
});

Deno.test("a router that cuts every record keeps no volume, and one that cuts a clone's keeps no clone", async () => {
  const sizes: readonly (readonly [maxComment: number, kept: number])[] = [[79, 0], [110, 1]];
  for (const [maxComment, kept] of sizes) {
    await using stack = await startStack({ simulator: { behaviours: { maxComment } } });
    const text = new RegExp(`keeps only ${maxComment} bytes`);
    if (kept === 0) await rejectsWith(status.FAILED_PRECONDITION, create(stack, "pvc-short"), text);
    else {
      const volumeId = await create(stack, "pvc-short");
      const clone = cloneOf(stack, "pvc-clone", { volumeId });
      await rejectsWith(status.FAILED_PRECONDITION, clone, text);
    }
    const { disks, files, subvolumes } = await state(stack);
    assert.equal(disks.filter((disk) => disk.type === "file").length, kept);
    assert.equal(files.filter(({ name }) => name.endsWith(".img")).length, kept);
    assert.equal(subvolumes.length, 1 + kept);
  }
});

Deno.test("a router of unknown behaviour grows a volume only between two uses, and the driver promises no more", async () => {
  await using stack = await startStack();
  const capability = async ({ clients }: Pick<Stack, "clients">) => {
    const { capabilities } = await clients.identity.call("GetPluginCapabilities", {});
    return capabilities.flatMap(({ volumeExpansion }) => volumeExpansion?.type ?? []);
  };
  assert.deepEqual(await capability(stack), ["OFFLINE"]);
  const id = await create(stack, "pvc-1");
  await publish(stack, id);
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, expand(stack, id), /only while it is not exported/);
  });
  await unpublish(stack, id);
  await expand(stack, id);
  const { publishContext } = await publish(stack, id);
  assert.equal(publishContext["size"], String(2n * gibibyte));
  assert.equal(stack.simulator.model.disks.findBySlot(id)?.attachedBytes, 2n * gibibyte);
  await using probed = await startStack(growsOnline);
  assert.deepEqual(await capability(probed), ["ONLINE"]);
});

Deno.test("a router that takes a new size and grows nothing is found out: nothing is left of a larger clone", async () => {
  await using stack = await startStack({ simulator: { behaviours: { grow: "never" } } });
  const volumeId = await create(stack, "pvc-fixed");
  const reason = /took the new size and did not grow the disk/;
  await rejectsWith(status.FAILED_PRECONDITION, expand(stack, volumeId), reason);
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, cloneOf(stack, "pvc-larger", { volumeId }, twice), reason);
  });
});

Deno.test("a router that ends the sessions of others gets no new volume, and what exists goes on", async () => {
  const profile = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  const answers = { sideEffects: "ends-sessions" } as const;
  await Deno.writeTextFile(
    profile,
    formatProfile({ name: "r", version: "7.24", poolFilesystem: "btrfs", answers }),
  );
  try {
    await using stack = await startStack();
    const id = await create(stack, "pvc-old");
    const told = { ...stack, ...await stack.another(["--router-profile", profile]) };
    await changesNothing(stack, async () => {
      const refused = /ends the sessions of nodes to other volumes.*existing volumes go on/;
      await rejectsWith(status.FAILED_PRECONDITION, create(told, "pvc-new"), refused);
      await rejectsWith(status.FAILED_PRECONDITION, cloneOf(told, "pvc-clone", { volumeId: id }), refused);
      assert.equal(await create(told, "pvc-old"), id);
    });
    await publish(told, id);
    await unpublish(told, id);
    await expand(told, id);
    await told.clients.controller.call("DeleteVolume", { volumeId: id });
    assert.equal(stack.simulator.model.disks.findBySlot(id), undefined);
  } finally {
    await Deno.remove(profile);
  }
});

const shared: Sent<VolumeCapability> = { block: {}, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" } };
const nodes = ["--known-node", "node-1", "--known-node", "node-2", "--known-node", "node-3"];

/** A volume that two nodes hold, with its NQN, and calls that publish and unpublish it. */
async function migrating(stack: Stack, volumeContext: Readonly<Record<string, string>> = {}) {
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-one", { volumeCapabilities: [shared] });
  const publish = async (nodeId: string) => {
    const request = { ...publishRequest(volumeId, nodeId, shared), volumeContext };
    return (await controller.call("ControllerPublishVolume", request)).publishContext["nqn"];
  };
  const first = await publish("node-1");
  assert.equal(await publish("node-2"), first);
  return {
    volumeId,
    publish,
    nqn: first,
    unpublish: (nodeId: string) => controller.call("ControllerUnpublishVolume", { volumeId, nodeId }),
  };
}

Deno.test("a node that leaves a shared volume goes on reading, as the other one does: that is said, and a third one is kept out", async () => {
  await using stack = await startStack({ simulator: { exporter: "tcp" }, flags: nodes });
  const nvmePort = String(stack.simulator.nvmePort);
  const volume = await migrating(stack, { nvmePort });
  const target = nvmeHostSide("127.0.0.1", Number(nvmePort));
  const call = { requestId: "test", signal: AbortSignal.timeout(10_000) };
  const connect = (nodeId: string) => {
    const { hostNqn, hostId } = hostIdentityOf(nodeId);
    return target.connect(volume.nqn!, { nqn: hostNqn, id: hostId }, call);
  };
  await using detaching = await connect("node-1");
  await using staying = await connect("node-2");
  await volume.unpublish("node-1");
  await staying.read(0n, 1, call);
  await detaching.read(0n, 1, call);
  assert.ok(stack.log.some((line) => line.includes("the node that left is not fenced")));
  await rejectsWith(status.FAILED_PRECONDITION, volume.publish("node-3"), /could not be shut out/);
});

Deno.test("a list of hosts that a person has set stays, whatever happens to the volume, and costs no command", async () => {
  await using stack = await startStack({ ...growsOnline, flags: nodes });
  const volume = await migrating(stack);
  const { disks } = stack.simulator.model;
  const disk = () => disks.findBySlot(volume.volumeId)!;
  const names = ["node-1", "node-2"].map((nodeId) => hostIdentityOf(nodeId).hostNqn).join(",");
  const costs = async (most: number, work: () => Promise<unknown>) => {
    assert.ok(await cost(stack, work) <= most, `${work}`);
    assert.equal(disk().allowHostName, names, `${work}`);
  };
  disks.replace({ ...disk(), allowHostName: names });
  await costs(1, () => volume.publish("node-2"));
  await costs(2, () => volume.unpublish("node-1"));
  await costs(2, () => volume.publish("node-1"));
  await costs(2, () => expand(stack, volume.volumeId));
  await costs(2, () => volume.unpublish("node-1"));
  await costs(1, () => volume.unpublish("node-2"));
  await costs(1, () => volume.publish("node-3"));
  await costs(1, () => volume.unpublish("node-3"));
  assert.deepEqual(stack.simulator.violations.list(), []);
});
