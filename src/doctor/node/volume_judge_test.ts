import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { block, call, FakeNode, nqn, targetPath } from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import { describeUser } from "../../volume/model/host/device_user.ts";
import { judgeVolume, judgeVolumes } from "./volume_judge.ts";
import { viewVolume } from "./volume_view.ts";
import { volumesOfNode } from "./volumes.ts";

const files = new FakeKernelFiles();

async function described(node: FakeNode) {
  const [volume] = await volumesOfNode(node.deps, call());
  assert.ok(volume !== undefined);
  const adapters = { deps: node.deps, files, depth: "everything" } as const;
  const view = await viewVolume(adapters, volume, call());
  return { view, findings: judgeVolume(view) };
}

async function published(request: Parameters<FakeNode["stage"]>[0] = {}): Promise<FakeNode> {
  const node = new FakeNode();
  await node.stage(request);
  await node.publish(request);
  return node;
}

Deno.test("judgeVolume() accepts a published volume of either kind, and only reads", async () => {
  for (const request of [{}, { capability: block }]) {
    const node = await published(request);
    const before = [...node.operations];
    const { findings, view } = await described(node);
    assert.deepEqual(findings, []);
    assert.deepEqual(view.mounts.filter(({ entry }) => entry === undefined), []);
    assert.deepEqual(node.operations.filter((operation) => operation !== "stats"), before);
  }
});

const down = { state: "connecting", stateName: "connecting" } as const;

const wrong: readonly (readonly [what: string, spoil: (node: FakeNode) => unknown, expected: RegExp])[] = [
  ["no connection", (node) => node.device.connected = false, /^problem NotConnected .*doctor --node/],
  [
    "a connection that is down",
    (node) => node.connections.set(nqn, down),
    /^problem ConnectionLost .*doctor --node/,
  ],
  ["another size", (node) => node.device.sizeBytes = 1n, /^problem DeviceTooSmall/],
  [
    "another device number",
    (node) => {
      node.device.deviceNumber = "7:9";
      node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:9" });
    },
    /^problem DeviceMismatch .*delete the pod/,
  ],
  [
    "a mount that is gone",
    (node) => node.table = node.table.filter(({ mountPoint }) => mountPoint !== targetPath),
    /^problem TargetMissing .*path=\/kubelet\/pods\/1\/mount/,
  ],
  [
    "a mount elsewhere",
    (node) => node.addMount("7:3", "/mnt"),
    /^warning MountedElsewhere .*did not ask for it: \/mnt/,
  ],
  [
    "a file system that turned read-only",
    (node) => node.table = node.table.map((entry) => ({ ...entry, superOptions: ["ro"] })),
    /^problem FilesystemReadOnly .*dmesg/,
  ],
  ["a staging that did not end", (node) => node.setStagingState({ staged: false }), /^problem NotStaged/],
  [
    "an unfinished mkfs",
    (node) => node.setStagingState({ filesystem: "started" }),
    /^warning MkfsUnfinished/,
  ],
  ["another epoch", (node) => node.setStagingState({ nqn: `${nqn}0` }), /^problem OtherEpoch .*nqn=nqn/],
  [
    "no state file",
    (node) => node.paths.nodes.delete("/state/volumes/pvc-1.json"),
    /^warning NoState .*nqn=nqn\..*detach nqn\./,
  ],
  [
    "a damaged state file",
    (node) => node.paths.nodes.set("/state/volumes/pvc-1.json", { kind: "file", text: "{" }),
    /^problem StateDamaged .*damaged.*: remove \/state\/volumes\/pvc-1\.json$/,
  ],
  [
    "several devices",
    (node) => {
      node.deps.connector.find = () =>
        Promise.reject(new VolumeError("identity-mismatch", "Cannot determine"));
    },
    /^problem Unknown Cannot determine/,
  ],
];

for (const [what, spoil, expected] of wrong) {
  Deno.test(`judgeVolume() finds ${what}`, async () => {
    const node = await published();
    await spoil(node);
    const { findings } = await described(node);
    const wording = findings.map(({ state, check, found, fix }) => `${state} ${check} ${found} ${fix ?? ""}`);
    assert.ok(wording.some((line) => expected.test(line)), wording.join("\n"));
  });
}

Deno.test("judgeVolume() finds a bound device node of another device", async () => {
  const node = await published({ capability: block });
  node.paths.nodes.set(targetPath, { kind: "block", deviceNumber: "7:4" });
  const { findings } = await described(node);
  assert.match(findings[0]?.found ?? "", /another device .*\(device 7:4\)$/);
});

Deno.test("judgeVolume() reports a device that refuses the writes that its volume needs", async () => {
  const spoilt = new FakeKernelFiles();
  spoilt.texts.set("/sys/dev/block/7:3/ro", "1");
  const node = await published();
  const [volume] = await volumesOfNode(node.deps, call());
  const view = await viewVolume({ deps: node.deps, files: spoilt, depth: "shown" }, volume!, call());
  assert.deepEqual(judgeVolume(view).map(({ state, check }) => `${state} ${check}`), [
    "warning WritesRefused",
  ]);
});

Deno.test("judgeVolumes() names each volume with what is wrong, or counts those that are staged", async () => {
  const judged = async (node: FakeNode) => {
    const adapters = { deps: node.deps, files, depth: "shown" } as const;
    const volumes = await volumesOfNode(node.deps, call());
    const views = await Promise.all(volumes.map((volume) => viewVolume(adapters, volume, call())));
    return judgeVolumes(views).map(({ check, state, found }) => `${check} ${state} ${found}`);
  };
  const node = new FakeNode();
  assert.deepEqual(await judged(node), [
    "volumes ok 0 staged here, each with its state file and its connection",
  ]);
  await node.stage();
  assert.deepEqual(await judged(node), [
    "volumes ok 1 staged here, each with its state file and its connection",
  ]);
  node.device.connected = false;
  assert.match((await judged(node))[0]!, /^volumes problem pvc-1: NotConnected: /);
});

Deno.test("a view names whoever keeps an unstage waiting, also of a map that cannot be used now and of another epoch", async () => {
  const holder = { certain: true, description: "process 7 (dd)" };
  const waiting = new FakeNode();
  await waiting.stage({ volumeContext: { deviceLayer: "multipath" } });
  waiting.table = [];
  waiting.device.connected = false;
  waiting.holder = holder;
  const older = await published();
  await older.unpublish();
  older.devices.set(`${nqn}0`, older.newDevice({ connected: true, path: "/dev/loop9", deviceNumber: "7:9" }));
  older.addMount("7:9", "/mnt");
  for (
    const [node, device, words] of [
      [waiting, "/dev/dm-0", "/dev/dm-0 is open: process 7 (dd)"],
      [older, "/dev/loop9", "/dev/loop9 is mounted at /mnt"],
    ] as const
  ) {
    const { view } = await described(node);
    assert.deepEqual(view.others.map(({ path }) => path), [device]);
    assert.deepEqual(view.users.map((user) => describeUser(user).words), [words]);
  }
});

Deno.test("the kubelet's own bind of a published raw device is none of its problems, and one that it has left is", async () => {
  const node = await published({ capability: block });
  const bind = "/kubelet/plugins/kubernetes.io/csi/volumeDevices/pvc-1/dev/0f1e";
  node.addMount("0:6", bind, { filesystem: "devtmpfs", root: "/loop3" });
  node.paths.nodes.set(bind, { kind: "block", deviceNumber: "7:3" });
  assert.deepEqual((await described(node)).findings, []);
  await node.unpublish();
  assert.match((await described(node)).findings[0]!.found, /did not ask for it: .*dev\/0f1e/);
});
