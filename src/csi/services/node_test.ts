import assert from "node:assert/strict";
import {
  call,
  epoch,
  FakeNode,
  nqn,
  publishContext,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import { refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import { NodeService } from "../../node/node_service.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { VolumeCapability } from "../generated/csi.ts";
import { lockKeys } from "../server/call.ts";
import { nodeMethods } from "./node.ts";

type MethodName = keyof ReturnType<typeof nodeMethods>;

/** A capability as the server passes it on. */
function capability(
  access: "block" | "mount" | undefined,
  mode = "SINGLE_NODE_WRITER",
  mountFlags: string[] = [],
): VolumeCapability {
  return {
    accessMode: { mode } as VolumeCapability["accessMode"],
    ...(access === undefined ? {} : { accessType: access }),
    ...(access === "mount" ? { mount: { fsType: "", mountFlags, volumeMountGroup: "" } } : {}),
    ...(access === "block" ? { block: {} } : {}),
  };
}

const complete = {
  volumeId,
  stagingTargetPath: stagingPath,
  targetPath,
  volumePath: targetPath,
  volumePublishPath: targetPath,
  volumeCapability: capability("mount"),
  publishContext: publishContext(),
  volumeContext: {},
  readonly: false,
  secrets: {},
  capacityRange: null,
};

type Request = Partial<Record<keyof typeof complete, unknown>>;

async function invoke(node: FakeNode, name: MethodName, change: Request = {}): Promise<unknown> {
  const method = nodeMethods(node.service)[name]!;
  const handler = method.handler as (request: unknown, context: unknown) => Promise<unknown>;
  return await handler({ ...complete, ...change }, call());
}

function is(kind: VolumeErrorKind) {
  return (error: unknown) => VolumeError.is(error, kind);
}

Deno.test("the Node methods take a file system volume through its whole life on the node", async () => {
  const node = new FakeNode();
  for (
    const name of [
      "NodeStageVolume",
      "NodePublishVolume",
      "NodeUnpublishVolume",
      "NodeUnstageVolume",
    ] as const
  ) {
    assert.deepEqual(await invoke(node, name), {});
  }
  assert.deepEqual([node.table, node.stagingState], [[], undefined]);
});

Deno.test("a wrong capability is final only while nothing that a kubelet would have to take down is on the node", async () => {
  const wrong = { volumeCapability: capability("mount", "MULTI_NODE_MULTI_WRITER") };
  const node = new FakeNode();
  await assert.rejects(invoke(node, "NodeStageVolume", wrong), refusal("invalid", /two nodes would write/));
  await assert.rejects(invoke(node, "NodePublishVolume", wrong), refusal("invalid", /two nodes would write/));
  await invoke(node, "NodeStageVolume");
  await assert.rejects(invoke(node, "NodeStageVolume", wrong), unsettled("invalid", /two nodes would write/));
  await assert.rejects(invoke(node, "NodePublishVolume", wrong), refusal("invalid"));
  await invoke(node, "NodePublishVolume");
  await assert.rejects(
    invoke(node, "NodePublishVolume", wrong),
    unsettled("invalid", /two nodes would write/),
  );
  await assert.rejects(
    invoke(node, "NodePublishVolume", { stagingTargetPath: "" }),
    unsettled("precondition", /no staging/),
  );
  await invoke(node, "NodeUnpublishVolume");
  await invoke(node, "NodeUnstageVolume");
  await assert.rejects(invoke(node, "NodeStageVolume", { volumeCapability: null }), refusal("invalid"));
});

for (const name of ["NodeUnpublishVolume", "NodeUnstageVolume"] as const) {
  Deno.test(`${name} disconnects a fenced volume whose lock another call holds`, async () => {
    const node = new FakeNode();
    await invoke(node, "NodeStageVolume");
    if (name === "NodeUnpublishVolume") await invoke(node, "NodePublishVolume");
    node.connections.set(nqn, { state: "connecting" });
    node.offered = () => [nqn.replace(epoch, "2-22222222")];
    const method = nodeMethods(node.service)[name]!;
    assert.ok(method.changing);
    const request = { ...complete, volumeId } as never;
    await method.whenBusy!(request, call());
    assert.deepEqual([node.device.connected, node.stagingState?.staged], [false, true]);
    await assert.rejects(
      async () => await method.whenBusy!({ volumeId: "../x" } as never, call()),
      is("invalid"),
    );
  });
}

Deno.test("NodeGetCapabilities advertises the implemented capabilities", async () => {
  const answer = await invoke(new FakeNode(), "NodeGetCapabilities") as {
    capabilities: { rpc: { type: string } }[];
  };
  assert.deepEqual(answer.capabilities.map((each) => each.rpc.type), [
    "GET_VOLUME_STATS",
    "SINGLE_NODE_MULTI_WRITER",
    "GET_VOLUME_HEALTH",
    "GET_STORAGE_HEALTH",
    "STAGE_UNSTAGE_VOLUME",
    "EXPAND_VOLUME",
  ]);
});

Deno.test("NodeGetInfo names the node", async () => {
  assert.deepEqual(await invoke(new FakeNode(), "NodeGetInfo"), { nodeId: "node-1", maxVolumesPerNode: "0" });
});

Deno.test("NodeGetVolumeStats counts bytes and inodes of a file system", async () => {
  const node = new FakeNode();
  await invoke(node, "NodeStageVolume");
  await invoke(node, "NodePublishVolume");
  assert.deepEqual(await invoke(node, "NodeGetVolumeStats"), {
    usage: [
      { unit: "BYTES", total: "100", used: "50", available: "50" },
      { unit: "INODES", total: "10", used: "1", available: "9" },
    ],
  });
});

Deno.test("NodeGetVolumeStats and NodeExpandVolume return the size of a block volume", async () => {
  const node = new FakeNode();
  const block = { volumeCapability: capability("block") };
  await invoke(node, "NodeStageVolume", block);
  await invoke(node, "NodePublishVolume", block);
  assert.deepEqual(await invoke(node, "NodeGetVolumeStats"), {
    usage: [{ unit: "BYTES", total: String(sizeBytes) }],
  });
  const capacityRange = { requiredBytes: String(sizeBytes), limitBytes: "0" };
  assert.deepEqual(await invoke(node, "NodeExpandVolume", { capacityRange }), {
    capacityBytes: String(sizeBytes),
  });
});

Deno.test("NodeGetVolumeHealth names the volume and its problems", async () => {
  const node = new FakeNode();
  await invoke(node, "NodeStageVolume");
  const ask = () => invoke(node, "NodeGetVolumeHealth", { volumePublishPath: "", stagingTargetPath: "" });
  assert.deepEqual(await ask(), { volumeHealth: { volumeId, healthStatuses: [] } });
  node.table = [];
  const message = `the file system is not mounted where it is staged: path=${stagingPath}`;
  assert.deepEqual(await ask(), {
    volumeHealth: {
      volumeId,
      healthStatuses: [{ status: "INACCESSIBLE", reason: "NotMounted", message }],
    },
  });
});

Deno.test("NodeGetStorageHealth reports what prevents the use of all volumes", async () => {
  const node = new FakeNode();
  node.obstacle = "no transport";
  const message = "this node cannot connect: no transport";
  assert.deepEqual(await invoke(node, "NodeGetStorageHealth"), {
    backendHealth: [{ status: "STORAGE_UNREACHABLE", reason: "TransportMissing", message }],
  });
  assert.deepEqual(await invoke(new FakeNode(), "NodeGetStorageHealth"), { backendHealth: [] });
});

Deno.test("NodeGetInfo is refused while this node can reach no volume, so that it is not registered", async () => {
  const node = new FakeNode();
  node.obstacle = "no transport";
  await assert.rejects(invoke(node, "NodeGetInfo"), refusal("precondition", /no volume: no transport$/));
  node.obstacle = undefined;
  assert.equal((await invoke(node, "NodeGetInfo") as { nodeId: string }).nodeId, "node-1");
});

Deno.test("NodeStageVolume passes mount flags on, and parses them", async () => {
  const node = new FakeNode();
  await invoke(node, "NodeStageVolume", { volumeCapability: capability("mount", undefined, ["noatime"]) });
  assert.deepEqual(node.stagingState?.mountFlags, ["noatime"]);
  await assert.rejects(
    invoke(new FakeNode(), "NodeStageVolume", { volumeCapability: capability("mount", undefined, ["bind"]) }),
    is("invalid"),
  );
});

Deno.test("NodePublishVolume on a node that has lost its stage passes on all that a stage needs", async () => {
  const node = new FakeNode();
  const volumeContext = { ctrlLossTmo: "77", "csi.storage.k8s.io/pod.name": "web-0" };
  const volumeCapability = capability("mount", undefined, ["noatime"]);
  await invoke(node, "NodePublishVolume", { volumeContext, volumeCapability });
  assert.deepEqual([node.stagingState?.staged, node.stagingState?.mountFlags], [true, ["noatime"]]);
  assert.equal(node.stagingState?.connection?.ctrlLossTmo, 77);
});

Deno.test("NodeGetInfo returns the configured topology", async () => {
  const { deps } = new FakeNode();
  const placed = new NodeService({ ...deps, settings: { ...deps.settings, topology: { rack: "a" } } });
  const info = await nodeMethods(placed).NodeGetInfo!.handler({}, call());
  assert.deepEqual(info.accessibleTopology, { segments: { rack: "a" } });
});

const locked = [
  ["NodeStageVolume", [volumeId, stagingPath]],
  ["NodeUnstageVolume", [volumeId, stagingPath]],
  ["NodePublishVolume", [volumeId, targetPath, stagingPath]],
  ["NodeUnpublishVolume", [volumeId, targetPath]],
  ["NodeExpandVolume", [volumeId]],
] as const;
const changing = locked.map(([name]) => name);

Deno.test("the changing methods, and no others, lock the volume, and the path that they mount or unmount", () => {
  const methods = nodeMethods(new FakeNode().service);
  const locking = Object.entries(methods).filter(([, method]) => method?.changing).map(([name]) => name);
  assert.deepEqual(locking.toSorted(), [...changing].toSorted());
  for (const [name, keys] of locked) {
    const lockKey = methods[name]?.changing
      ? methods[name].lockKey as (request: unknown) => string | string[]
      : () => "";
    assert.deepEqual(lockKeys(lockKey(complete)), keys);
  }
});

const badIds = [
  "",
  "../etc",
  "PVC-1",
  "storage-pool ",
  "x".repeat(41),
  "pvc 1",
  "pvc-1\n",
  "a;b",
  '"',
  "$x",
  "[",
  "-a",
];

for (const name of ["NodeUnpublishVolume", "NodeUnstageVolume"] as const) {
  Deno.test(`${name} of an id that no volume has is done where nothing is mounted, and refused elsewhere`, async () => {
    const node = new FakeNode();
    await invoke(node, "NodeStageVolume");
    await invoke(node, "NodePublishVolume");
    const { table } = node;
    const free = { targetPath: `${targetPath}-free`, stagingTargetPath: `${stagingPath}-free` };
    const wrong = { targetPath: "a", stagingTargetPath: "a" };
    for (const id of ["data_disk/7", ...badIds.filter((id) => id !== "")]) {
      await assert.rejects(invoke(node, name, { volumeId: id }), is("invalid"));
      assert.deepEqual(await invoke(node, name, { ...free, volumeId: id }), {});
      await assert.rejects(invoke(node, name, { ...wrong, volumeId: id }), is("invalid"));
    }
    assert.deepEqual(node.table, table);
  });
}

const takesDown = (name: MethodName) => name === "NodeUnpublishVolume" || name === "NodeUnstageVolume";

for (const name of [...changing, "NodeGetVolumeStats", "NodeGetVolumeHealth"] as const) {
  for (const id of badIds) {
    if (id !== "" && takesDown(name)) continue;
    Deno.test(`${name} throws invalid for the volume id ${JSON.stringify(id)}`, async () => {
      const node = new FakeNode();
      await assert.rejects(invoke(node, name, { volumeId: id }), is("invalid"));
      assert.deepEqual(node.operations, []);
    });
  }
}

const pathFields: readonly [MethodName, keyof typeof complete][] = [
  ["NodeStageVolume", "stagingTargetPath"],
  ["NodeUnstageVolume", "stagingTargetPath"],
  ["NodePublishVolume", "targetPath"],
  ["NodePublishVolume", "stagingTargetPath"],
  ["NodeUnpublishVolume", "targetPath"],
  ["NodeGetVolumeHealth", "volumePublishPath"],
  ["NodeGetVolumeHealth", "stagingTargetPath"],
];
const badPaths = [
  "relative/path",
  "/",
  "///",
  "/kubelet/../etc",
  "/kubelet/./x",
  "/kubelet/\0",
  "/kubelet/a\nb",
  `/${"x".repeat(256)}`,
  "/x".repeat(2048),
];

for (const [name, field] of pathFields) {
  for (const path of badPaths) {
    Deno.test(`${name} throws invalid for ${field}=${JSON.stringify(path.slice(0, 30))}`, async () => {
      const node = new FakeNode();
      await assert.rejects(invoke(node, name, { [field]: path }), is("invalid"));
      assert.deepEqual(node.operations, []);
    });
  }
}

const missing: readonly [MethodName, Request, VolumeErrorKind][] = [
  ["NodeStageVolume", { stagingTargetPath: "" }, "invalid"],
  ["NodeStageVolume", { volumeCapability: null }, "invalid"],
  ["NodeStageVolume", { volumeCapability: capability(undefined) }, "invalid"],
  ["NodeStageVolume", { volumeCapability: capability("mount", "UNKNOWN") }, "invalid"],
  ["NodeStageVolume", { volumeCapability: capability("mount", "MULTI_NODE_MULTI_WRITER") }, "invalid"],
  ["NodeStageVolume", { publishContext: {} }, "invalid"],
  ["NodeUnstageVolume", { stagingTargetPath: "" }, "invalid"],
  ["NodePublishVolume", { targetPath: "" }, "invalid"],
  ["NodePublishVolume", { volumeCapability: null }, "invalid"],
  ["NodePublishVolume", { stagingTargetPath: "" }, "precondition"],
  ["NodeUnpublishVolume", { targetPath: "" }, "invalid"],
  ["NodeExpandVolume", { volumePath: "" }, "invalid"],
  ["NodeGetVolumeStats", { volumePath: "" }, "invalid"],
  ["NodeExpandVolume", { volumePath: "some/path" }, "not-found"],
  ["NodeGetVolumeStats", { volumePath: "some/path" }, "not-found"],
  ["NodeExpandVolume", {}, "not-found"],
  ["NodeGetVolumeStats", {}, "not-found"],
  ["NodeGetVolumeHealth", {}, "not-found"],
  ["NodeGetVolumeHealth", { volumePublishPath: "some/path" }, "invalid"],
];

for (const [name, change, kind] of missing) {
  Deno.test(`${name} throws ${kind} on a fresh node with ${JSON.stringify(change)}`, async () => {
    const node = new FakeNode();
    await assert.rejects(invoke(node, name, change), is(kind));
    assert.deepEqual(node.operations, []);
  });
}

Deno.test("doubled and trailing slashes of a path make no difference", async () => {
  const node = new FakeNode();
  await invoke(node, "NodeStageVolume", { stagingTargetPath: `/${stagingPath}//` });
  assert.equal(node.stagingState?.stagingPath, stagingPath);
});
