// The controller on unusual routers: RouterOS before 7.21, where no node can be fenced, and routers that cut records,
// grow nothing, or keep lists of hosts. contract/matrix.ts tests the controller on all other kinds.
import assert from "node:assert/strict";
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

Deno.test("a driver told that its router grows nothing sends no growth: nothing changes, and the error gives the reason", async () => {
  await using stack = await startStack({
    simulator: { behaviours: { grow: "never" } },
    reported: { grow: "never" },
  });
  const volumeId = await create(stack, "pvc-fixed");
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, expand(stack, volumeId), /does not grow file-backed disks/);
    const clone = cloneOf(stack, "pvc-larger", { volumeId }, twice);
    await rejectsWith(status.FAILED_PRECONDITION, clone, /does not grow file-backed disks/);
  });
});

const shared: Sent<VolumeCapability> = { block: {}, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" } };
const host = (nodeId: string) => hostIdentityOf(nodeId).hostNqn;
const nodes = ["--known-node", "node-1", "--known-node", "node-2", "--known-node", "node-3"];

/** A volume that two nodes hold, with its NQN, calls that publish and unpublish it, and the router's lists of hosts. */
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

Deno.test("an export in use is not toggled on a router that gives it a new UUID each time", async () => {
  await using stack = await startStack({ reported: { allowHost: "list" }, flags: nodes });
  const volume = await migrating(stack);
  const uuid = () => stack.simulator.model.exports.accessOf(volume.nqn!)?.identity.uuid;
  const before = uuid();
  await volume.unpublish("node-1");
  assert.notEqual(before, undefined);
  assert.equal(uuid(), before);
  assert.ok(stack.log.some((line) => line.includes("the node that left is not fenced")));
});

Deno.test("the router lets in who stays, and not who leaves, under the same NQN", async () => {
  await using stack = await startStack({
    simulator: { behaviours: { identity: "kept" } },
    reported: { allowHost: "list", identity: "kept", unexport: 0, withdrawal: "ends-sessions" },
    flags: nodes,
  });
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

for (const behaviours of [{ unexport: 60_000 }, { withdrawal: "refuses-commands" }] as const) {
  Deno.test(`a node is not shut out by a toggle that does not end its session, or hurts the other's: ${JSON.stringify(behaviours)}`, async () => {
    await using stack = await startStack({
      simulator: { behaviours: { identity: "kept", ...behaviours }, exporter: "tcp" },
      reported: {
        ...{ allowHost: "list", identity: "kept", unexport: 0, withdrawal: "ends-sessions" },
        ...behaviours,
      },
      flags: nodes,
    });
    const nvmePort = String(stack.simulator.nvmePort);
    const volume = await migrating(stack, { nvmePort });
    const target = nvmeHostSide("127.0.0.1", Number(nvmePort));
    const call = { requestId: "test", signal: new AbortController().signal, deadlineMs: Date.now() + 10_000 };
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
}
