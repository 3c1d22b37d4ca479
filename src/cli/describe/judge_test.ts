import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../../tests/fakes/kernel_files.ts";
import { block, call, FakeNode, nqn, stagingPath, targetPath } from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import { volumesOfNode } from "../../doctor/node/volumes.ts";
import { judgeView } from "./describe.ts";
import { formatTable, formatVolume, jsonValue, volumeJson } from "./print.ts";
import { viewVolume } from "./view.ts";

const files = new FakeKernelFiles();

async function described(node: FakeNode) {
  const [volume] = await volumesOfNode(node.deps, call());
  assert.ok(volume !== undefined);
  const adapters = { deps: node.deps, files, seeksHolder: true };
  const view = await viewVolume(adapters, volume, call());
  return { view, findings: judgeView(view) };
}

async function published(request: Parameters<FakeNode["stage"]>[0] = {}): Promise<FakeNode> {
  const node = new FakeNode();
  await node.stage(request);
  await node.publish(request);
  return node;
}

Deno.test("judgeView() accepts a published volume of either kind, and only reads", async () => {
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
    /^problem DeviceMismatch .*restart the pod/,
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
  ["an unfinished mkfs", (node) => node.setStagingState({ mkfs: "started" }), /^warning MkfsUnfinished/],
  ["another epoch", (node) => node.setStagingState({ nqn: `${nqn}0` }), /^problem OtherEpoch .*nqn=nqn/],
  [
    "no state file",
    (node) => node.paths.nodes.delete("/state/volumes/pvc-1.json"),
    /^warning NoState .*detach pvc-1/,
  ],
  [
    "several devices",
    (node) => {
      node.deps.connector.find = () => Promise.reject(new VolumeError("identity-mismatch", "Cannot tell"));
    },
    /^problem Unknown Cannot tell/,
  ],
];

for (const [what, spoil, expected] of wrong) {
  Deno.test(`judgeView() finds ${what}`, async () => {
    const node = await published();
    await spoil(node);
    const { findings } = await described(node);
    const wording = findings.map(({ state, check, found, fix }) => `${state} ${check} ${found} ${fix ?? ""}`);
    assert.ok(wording.some((line) => expected.test(line)), wording.join("\n"));
  });
}

Deno.test("judgeView() finds a bound device node of another device", async () => {
  const node = await published({ capability: block });
  node.paths.nodes.set(targetPath, { kind: "block", deviceNumber: "7:4" });
  const { findings } = await described(node);
  assert.match(findings[0]?.found ?? "", /another device .*\(device 7:4\)$/);
});

Deno.test("judgeView() reports a device that refuses the writes that its volume needs", async () => {
  const spoilt = new FakeKernelFiles();
  spoilt.texts.set("/sys/dev/block/7:3/ro", "1");
  const node = await published();
  const [volume] = await volumesOfNode(node.deps, call());
  const view = await viewVolume({ deps: node.deps, files: spoilt, seeksHolder: false }, volume!, call());
  assert.deepEqual(judgeView(view).map(({ state, check }) => `${state} ${check}`), ["warning WritesRefused"]);
});

Deno.test("formatVolume(), formatTable() and volumeJson() say the same", async () => {
  const node = await published();
  node.holder = { certain: true, description: "process 7 (dd)" };
  const volume = await described(node);
  const text = formatVolume(volume).join("\n");
  assert.match(text, /^volume +pvc-1: published$/m);
  assert.match(text, /^device +\/dev\/loop3 \(7:3\), 1 GiB \(1073741824 bytes\)$/m);
  assert.match(text, /^open +process 7 \(dd\)$/m);
  assert.ok(text.includes(stagingPath) && text.endsWith("describe: healthy"), text);
  const [head, row] = formatTable([volume]);
  assert.match(head!, /^VOLUME +KIND +STATE +DEVICE +SIZE +CONNECTIONS +MOUNTS +HEALTH$/);
  assert.match(row!, /^pvc-1 +ext4 +published +\/dev\/loop3 +1 GiB +nvme3=live +2 +healthy$/);
  const json = JSON.parse(JSON.stringify(volumeJson(volume), jsonValue));
  assert.deepEqual([json.volume, json.healthy, json.device.sizeBytes, json.device.proven], [
    "pvc-1",
    true,
    2 ** 30,
    true,
  ]);
  assert.deepEqual(json.mounts.map(({ role }: { role: string }) => role), ["staging", "published"]);
});
