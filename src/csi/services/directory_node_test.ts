import assert from "node:assert/strict";
import { contextOf, FakeNfsNode, targetOf } from "../../../tests/fakes/nfs.ts";
import { refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import type { VolumeCapability } from "../generated/csi.ts";
import { lockKeys } from "../server/call.ts";
import { directoryNodeMethods } from "./directory_node.ts";

function capability(mode: string, access: "mount" | "block" = "mount", fsType = ""): VolumeCapability {
  return {
    accessMode: { mode } as VolumeCapability["accessMode"],
    accessType: access,
    ...access === "mount" ? { mount: { fsType, mountFlags: [], volumeMountGroup: "" } } : { block: {} },
  } as VolumeCapability;
}

const complete: Record<string, unknown> = {
  volumeId: "a",
  targetPath: targetOf("a"),
  stagingTargetPath: "",
  volumePath: targetOf("a"),
  volumePublishPath: targetOf("a"),
  volumeCapability: capability("MULTI_NODE_MULTI_WRITER"),
  publishContext: {},
  volumeContext: contextOf("a"),
  readonly: false,
  secrets: {},
};

type MethodName = keyof ReturnType<typeof directoryNodeMethods>;

function scene() {
  const node = new FakeNfsNode();
  node.addDirectory("/pool/volumes/a");
  const methods = directoryNodeMethods(node.service);
  const invoke = async (name: MethodName, change: Record<string, unknown> = {}) => {
    const handler = methods[name]!.handler as (request: unknown, context: unknown) => Promise<unknown>;
    return await handler({ ...complete, ...change }, node.call());
  };
  return { node, methods, invoke };
}

Deno.test("the Node service takes a directory through its whole life", async () => {
  const { node, invoke } = scene();
  await invoke("NodePublishVolume");
  assert.deepEqual(await invoke("NodeGetVolumeStats"), {
    usage: [
      { unit: "BYTES", total: "1000", used: "400", available: "600" },
      { unit: "INODES", total: "10", used: "4", available: "6" },
    ],
  });
  assert.deepEqual(await invoke("NodeGetVolumeHealth"), {
    volumeHealth: { volumeId: "a", healthStatuses: [] },
  });
  await invoke("NodeUnpublishVolume");
  assert.deepEqual(node.table, []);
  assert.deepEqual(await invoke("NodeGetStorageHealth"), { backendHealth: [] });
});

Deno.test("NodePublishVolume refuses a wrong capability for good only while nothing is mounted at the target", async () => {
  const { invoke } = scene();
  const wrong = { volumeCapability: capability("MULTI_NODE_MULTI_WRITER", "block") };
  await assert.rejects(invoke("NodePublishVolume", wrong), refusal("invalid"));
  await invoke("NodePublishVolume");
  await assert.rejects(invoke("NodePublishVolume", wrong), unsettled("invalid"));
  await invoke("NodeUnpublishVolume");
});

Deno.test("NodeUnpublishVolume of an id that no volume has is done where nothing is mounted, and refused elsewhere", async () => {
  const { node, invoke } = scene();
  await invoke("NodePublishVolume");
  const { table } = node;
  for (const volumeId of ["a\nb", "x".repeat(129)]) {
    await assert.rejects(invoke("NodeUnpublishVolume", { volumeId }), refusal("invalid", /volume id/));
    assert.deepEqual(await invoke("NodeUnpublishVolume", { volumeId, targetPath: targetOf("free") }), {});
  }
  assert.deepEqual(node.table, table);
});

for (
  const mode of [
    "SINGLE_NODE_WRITER",
    "SINGLE_NODE_MULTI_WRITER",
    "MULTI_NODE_READER_ONLY",
    "MULTI_NODE_SINGLE_WRITER",
  ]
) {
  const isKnown = mode !== "MULTI_NODE_SINGLE_WRITER";
  Deno.test(`NodePublishVolume ${isKnown ? "takes" : "refuses"} the access mode ${mode}`, async () => {
    const publishing = scene().invoke("NodePublishVolume", { volumeCapability: capability(mode) });
    if (isKnown) await publishing;
    else await assert.rejects(publishing, refusal("invalid", /access mode/));
  });
}

for (
  const [name, change] of [
    ["NodePublishVolume", { volumeId: "" }],
    ["NodePublishVolume", { volumeId: "a\nb" }],
    ["NodePublishVolume", { volumeId: "x".repeat(129) }],
    ["NodePublishVolume", { targetPath: "/kubelet/../etc" }],
    ["NodePublishVolume", { volumeCapability: null }],
    ["NodePublishVolume", { volumeCapability: capability("MULTI_NODE_MULTI_WRITER", "block") }],
    ["NodePublishVolume", { volumeCapability: capability("MULTI_NODE_MULTI_WRITER", "mount", "ext4") }],
    ["NodePublishVolume", { targetPath: "" }],
    ["NodeUnpublishVolume", { targetPath: "relative" }],
    ["NodeGetVolumeStats", { volumePath: "" }],
    ["NodeGetVolumeHealth", { volumePublishPath: "relative" }],
  ] as const
) {
  Deno.test(`${name} refuses ${JSON.stringify(change).slice(0, 60)}`, async () => {
    await assert.rejects(scene().invoke(name, change), refusal("invalid"));
  });
}

Deno.test("a kubelet is told to publish without a stage, and stages nothing", async () => {
  const { methods, invoke } = scene();
  const { capabilities } = await invoke("NodeGetCapabilities") as {
    capabilities: { rpc: { type: string } }[];
  };
  const types = capabilities.map(({ rpc }) => rpc.type);
  assert.deepEqual(types, [
    "GET_VOLUME_STATS",
    "SINGLE_NODE_MULTI_WRITER",
    "GET_VOLUME_HEALTH",
    "GET_STORAGE_HEALTH",
  ]);
  for (const name of ["NodeStageVolume", "NodeUnstageVolume", "NodeExpandVolume"] as const) {
    assert.equal(methods[name], undefined);
  }
});

Deno.test("NodeGetInfo refuses to register a node that can mount nothing", async () => {
  const { node, invoke } = scene();
  assert.deepEqual(await invoke("NodeGetInfo"), { nodeId: "node-1", maxVolumesPerNode: "0" });
  node.obstacle = "the kernel has no NFSv4 client";
  await assert.rejects(invoke("NodeGetInfo"), refusal("precondition", /no NFSv4 client/));
});

Deno.test("changing calls lock the volume and the path, so that a second one is refused", () => {
  const { methods } = scene();
  const keys = (name: MethodName) => {
    const one = methods[name]!;
    return one.changing ? lockKeys(one.lockKey(complete as never)) : [];
  };
  assert.deepEqual(keys("NodePublishVolume"), ["a", targetOf("a")]);
  assert.deepEqual(keys("NodeUnpublishVolume"), ["a", targetOf("a")]);
  assert.deepEqual(keys("NodeGetVolumeStats"), []);
});
