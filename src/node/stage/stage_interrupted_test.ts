import { refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  breakEachStep,
  call,
  ext4,
  type FakeDevice,
  FakeNode,
  injected,
  sizeBytes,
  stagingPath,
  targetPath,
} from "../../../tests/fakes/node_deps.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { StageRequest } from "./wish.ts";

/** A node on which mkfs was started once and never ended. */
async function interrupted(change: Partial<FakeDevice> = {}): Promise<FakeNode> {
  const node = new FakeNode();
  node.before = (operation) => {
    if (operation === "format") throw injected;
  };
  await assert.rejects(node.stage(), (error) => error === injected);
  node.before = () => {};
  assert.deepEqual([node.stagingState, node.known?.filesystem], [undefined, "started"]);
  Object.assign(node.device, { content: "garbage" }, change);
  return node;
}

Deno.test("stage() after an interrupted mkfs erases the ends and formats again, not lazily", async () => {
  const node = await interrupted();
  await node.stage();
  const steps = node.operations.filter((operation) => ["erase", "format"].includes(operation));
  assert.deepEqual(steps.slice(-2), ["erase", "format"]);
  assert.deepEqual(node.formats.map((format) => format.lazy), [false]);
  assert.equal(node.paths.nodes.get(stagingPath)?.mode, 0o777);
});

Deno.test("stage() after an interrupted mkfs formats an incomplete file system again", async () => {
  const node = await interrupted({ content: "ext4", complete: false });
  await node.stage();
  assert.equal(node.formats.length, 1);
});

Deno.test("stage() after an interrupted mkfs throws busy while the old one may run, and changes nothing", async () => {
  for (const busy of ["holder", "claim"]) {
    // A complete file system does not count as one while mkfs may still run.
    const node = await interrupted({ content: "ext4", complete: true });
    // Held by the mkfs of the process that was killed.
    node.device.connected = true;
    if (busy === "claim") node.claimed = true;
    else node.holder = { certain: true, description: "process 7 (mkfs.ext4)" };
    await assert.rejects(node.stage(), refusal("busy"));
    for (const step of ["erase", "check", "mountDevice"]) assert.ok(!node.operations.includes(step));
    assert.equal(node.formats.length, 0);
    assert.equal(node.known?.filesystem, "started");
  }
});

/** A node whose driver was killed at an operation of a stage, with what that has left. */
async function killedAt(operation: string, change: Partial<StageRequest> = {}): Promise<FakeNode> {
  const node = new FakeNode();
  let isDead = false;
  node.before = (now) => {
    isDead ||= now === operation;
    if (isDead) throw injected;
  };
  await assert.rejects(node.stage(change));
  node.before = () => {};
  assert.deepEqual([node.device.connected, node.stagingState?.staged], [true, false]);
  return node;
}

const layered = { volumeContext: { deviceLayer: "multipath" } };
const killed: readonly (readonly [string, Partial<StageRequest>])[] = [
  ["probe", {}],
  ["format", {}],
  ["mountDevice", {}],
  ["probe", layered],
  ["format", layered],
];

for (const [at, change] of killed) {
  const what = change === layered ? " over a device layer" : "";
  Deno.test(`stage()${what} that is refused leaves nothing of one that was killed at ${at}, as nobody would unstage it`, async () => {
    const node = await killedAt(at, change);
    const wasBegun = node.stagingState?.filesystem !== "none";
    node.table = [];
    node.device.content = "btrfs";
    await assert.rejects(node.stage(change), refusal("precondition"));
    assert.deepEqual([node.device.connected, node.mapper.maps.size], [false, 0]);
    assert.equal(node.stagingState, undefined);
    assert.equal(node.known !== undefined, wasBegun, "what was begun on the volume stays known");
  });

  Deno.test(`stage()${what} with other options takes down what one has left that was killed at ${at}`, async () => {
    const node = await killedAt(at, change);
    node.device.complete = false;
    await node.stage({ ...change, mountFlags: ["noatime"] });
    const { staged, mountFlags } = node.stagingState!;
    assert.deepEqual([staged, mountFlags, node.device.content], [true, ["noatime"], "ext4"]);
  });
}

Deno.test("stage() that is refused is to be tried again while somebody uses what an earlier one has left", async () => {
  const node = await killedAt("probe");
  node.device.content = "btrfs";
  node.holder = { certain: true, description: "process 7 (dd)" };
  await assert.rejects(node.stage(), refusal("unavailable"));
  assert.deepEqual([node.device.connected, node.stagingState?.staged], [true, false]);
});

const stillRefused: readonly [string, Partial<FakeDevice>, Record<string, string>, VolumeErrorKind][] = [
  ["may not be formatted any more", {}, { mayFormat: "false" }, "precondition"],
  ["has another size", { sizeBytes: sizeBytes * 2n }, { size: String(sizeBytes * 2n) }, "precondition"],
  ["holds another file system", { content: "btrfs" }, {}, "precondition"],
];

for (const [name, change, context, kind] of stillRefused) {
  Deno.test(`stage() after an interrupted mkfs refuses, again and again, a device that ${name}`, async () => {
    const node = await interrupted(change);
    for (let i = 0; i < 3; i++) await assert.rejects(node.stage({}, context), refusal(kind));
    assert.equal(node.formats.length, 0);
  });
}

Deno.test("stage() after an interrupted mkfs that was unstaged finishes it, also when asked in another way", async () => {
  for (const change of [{}, { mountFlags: ["noatime"] }, { stagingPath: "/kubelet/staging/other" }]) {
    const node = await interrupted();
    await node.unstage();
    assert.equal(node.known?.filesystem, "started");
    await node.stage(change);
    assert.equal(node.formats.length, 1);
    await node.service.unstage({ volumeId: "pvc-1", stagingPath, ...change }, call());
    assert.equal(node.stagingState, undefined);
  }
});

Deno.test("stage() after an interrupted mkfs keeps what a raw block use has written since", async () => {
  const node = await interrupted();
  await node.unstage();
  await node.stage({ capability: block });
  await node.unstage();
  assert.deepEqual([node.stagingState, node.known], [undefined, undefined]);
  node.device.content = "garbage";
  await assert.rejects(node.stage(), refusal("precondition", /data of no known kind/));
  assert.deepEqual([node.formats.length, node.operations.includes("erase")], [0, false]);
});

Deno.test("stage() begins anew in another way what is finished and unused, also when its device has gone", async () => {
  const node = new FakeNode();
  node.device.content = "ext4";
  await node.stage();
  await node.stage({ mountFlags: ["noatime"] });
  assert.deepEqual(node.stagingState?.mountFlags, ["noatime"]);
  node.device.connected = false;
  await node.stage();
  const { mountFlags, used, staged } = node.stagingState!;
  assert.deepEqual([mountFlags, used, staged, node.formats], [[], true, true, []]);
});

const users: Readonly<Record<string, (node: FakeNode) => unknown>> = {
  "a pod": (node) => node.publish(),
  "a mount elsewhere": (node) => node.addMount("7:3", "/somewhere"),
  "a process": (node) => node.holder = { certain: true, description: "process 7 (dd)" },
  "a device of this node's kernel": (node) => node.layers = ["dm-3 (LVM)"],
};
for (const [what, use] of Object.entries(users)) {
  Deno.test(`stage() in another way is refused, and to be repeated, while ${what} uses what is staged`, async () => {
    const node = new FakeNode();
    await node.stage();
    await use(node);
    const before = structuredClone([node.table, node.device.connected]);
    const refused = unsettled(
      "in-use",
      /staged in another way: .*the mount flags differ; and it is in use: /,
    );
    await assert.rejects(node.stage({ mountFlags: ["noatime"] }), refused);
    assert.deepEqual([node.table, node.device.connected], before);
    assert.deepEqual([node.stagingState?.staged, node.stagingState?.mountFlags], [true, []]);
  });
}

Deno.test("stage() at another path does not take the volume from the one at which it is staged", async () => {
  const node = new FakeNode();
  await node.stage();
  node.paths.nodes.set("/kubelet/staging/elsewhere", { kind: "directory" });
  const moved = node.stage({ stagingPath: "/kubelet/staging/elsewhere" });
  await assert.rejects(moved, unsettled("exists-incompatible", /staged at=/));
  assert.deepEqual(node.table.map(({ mountPoint }) => mountPoint), [stagingPath]);
});

for (const after of [undefined, reboot]) {
  const when = after === undefined ? "" : " after a reboot of the node";
  Deno.test(`stage() in another way${when} succeeds after a crash at any step, also of the first one's end`, async () => {
    const staged = async () => {
      const node = new FakeNode();
      node.device.content = "ext4";
      await node.stage();
      after?.(node);
      return node;
    };
    const again = (node: FakeNode) => node.stage({ mountFlags: ["noatime"] }, { mayFormat: "false" });
    await breakEachStep(staged, again, async (node, step) => {
      await again(node);
      assert.deepEqual([node.stagingState?.mountFlags, node.formats], [["noatime"], []], step);
    }, "crashes");
  });
}

Deno.test("stage() that is refused before its first step is to be repeated while an earlier one has left something", async () => {
  const node = new FakeNode();
  node.before = (operation) => {
    if (["mountDevice", "disconnect"].includes(operation)) throw injected;
  };
  await assert.rejects(node.stage(), refusal("unavailable", /could not be undone/));
  node.before = () => {};
  const wrong = { volumeContext: { fsckMode: "never" } };
  await assert.rejects(node.stage(wrong), unsettled("invalid", /fsckMode/));
  await node.unstage();
  await assert.rejects(node.stage(wrong), refusal("invalid", /fsckMode/));
});

/** How a volume is staged, and how it is asked for after its PersistentVolume was edited. */
const edited: readonly [string, Partial<StageRequest>, Partial<StageRequest>][] = [
  ["a file system", {}, { mountFlags: ["noatime"] }],
  ["a file system over a device layer", { volumeContext: { deviceLayer: "multipath" } }, {
    volumeContext: { deviceLayer: "multipath" },
    mountFlags: ["noatime"],
  }],
  ["a raw block volume", { capability: block }, {
    capability: { access: "block", mode: "single-node-reader-only" },
  }],
];

/** The node's machine was reset: no mount, no map and no connection is left. */
function reboot(node: FakeNode): void {
  node.table = [];
  node.device.connected = false;
  node.mapper.maps.clear();
  node.showDevices();
}

for (const [what, first, second] of edited) {
  Deno.test(`stage() after a reboot of the node takes other options of ${what}, and knows the device still`, async () => {
    const node = new FakeNode();
    node.device.uniqueId = "a".repeat(32);
    await node.stage(first);
    await node.publish({ capability: first.capability ?? ext4 });
    reboot(node);
    Object.assign(node.device, { uniqueId: "b".repeat(32), sizeBytes: sizeBytes / 2n });
    await assert.rejects(node.stage(second), refusal("identity-mismatch"));
    Object.assign(node.device, { uniqueId: "a".repeat(32), sizeBytes });
    await node.stage(second, { mayFormat: "false" });
    const { staged, published } = node.stagingState!;
    assert.deepEqual([staged, published, node.device.connected], [true, [], true]);
  });

  Deno.test(`stage() in another way is refused while a pod has ${what} whose connection was given up`, async () => {
    const node = new FakeNode();
    await node.stage(first);
    await node.publish({ capability: first.capability ?? ext4 });
    node.device.connected = false;
    node.mapper.maps.clear();
    node.showDevices();
    node.table = node.table.filter(({ mountPoint }) => mountPoint === targetPath);
    assert.equal(node.table.length, 1);
    await assert.rejects(node.stage(second), unsettled("in-use", /staged in another way/));
    assert.deepEqual(node.stagingState?.published.map((each) => each.targetPath), [targetPath]);
  });
}

Deno.test("stage() in another way after a reboot of the node takes no device smaller than the volume has become", async () => {
  const node = new FakeNode();
  await node.stage();
  node.setStagingState({ namespaceBytes: String(sizeBytes * 2n) as never });
  reboot(node);
  for (let tries = 0; tries < 3; tries++) {
    await assert.rejects(node.stage({ mountFlags: ["noatime"] }), refusal("identity-mismatch"));
  }
});

Deno.test("stage() that is refused after a reboot of the node leaves no record, so that a person can attach the volume", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.publish();
  reboot(node);
  const { filesystems } = node.deps;
  filesystems.check = () => Promise.reject(new VolumeError("precondition", "Cannot use it: repair it"));
  await assert.rejects(node.stage(), refusal("precondition", /repair it/));
  assert.deepEqual([node.stagingState, node.device.connected], [undefined, false]);
  assert.deepEqual([node.known?.used, node.known?.seenOn?.sizeBytes], [true, sizeBytes]);
  await node.unstage();
  assert.deepEqual(node.known?.seenOn?.sizeBytes, sizeBytes);
});

Deno.test("stage() after an interrupted mkfs refuses a device of another identity", async () => {
  const node = await interrupted();
  const path = "/state/known/pvc-1.json";
  const { content, ...known } = JSON.parse(node.paths.nodes.get(path)!.text!);
  const other = { ...known, content: { ...content, begunOn: { ...content.begunOn, uniqueId: "00ff" } } };
  node.paths.nodes.set(path, { kind: "file", text: JSON.stringify(other) });
  await assert.rejects(node.stage(), refusal("identity-mismatch"));
});

Deno.test("stage() opens the root of a new file system also after an interruption or an unstage, and never later", async () => {
  for (const isUnstaged of [false, true]) {
    const node = new FakeNode();
    node.before = (operation) => {
      if (operation.startsWith("setMode")) throw injected;
    };
    await assert.rejects(node.stage(), (error) => error === injected);
    node.before = () => {};
    if (isUnstaged) await node.unstage();
    await node.stage();
    assert.deepEqual([node.formats.length, node.paths.nodes.get(stagingPath)?.mode], [1, 0o777]);
    await node.stage();
    assert.equal(node.operations.filter((operation) => operation.startsWith("setMode")).length, 2);
  }
});

Deno.test("stage() makes an unrecorded connection again after a crash at any step, where checksums are requested", async () => {
  for (const capability of [ext4, block]) {
    let ended = false;
    const unrecorded = () => {
      const node = new FakeNode();
      node.device.connected = true;
      ended = false;
      node.after = (operation) => void (ended ||= operation === "disconnect");
      return Promise.resolve(node);
    };
    const request = { volumeContext: { dataDigest: "true" }, capability };
    await breakEachStep(unrecorded, (node) => node.stage(request), async (node, step) => {
      await node.stage(request);
      assert.deepEqual([ended, node.stagingState?.staged], [true, true], step);
    }, "crashes");
  }
});

Deno.test("stage() refuses a raw volume of which the node has mounted a partition, until the volume is staged", async () => {
  const node = new FakeNode();
  node.partitions = [{ path: "/dev/loop3p1", deviceNumber: "259:9" }];
  node.addMount("259:9", "/mnt/found-by-fstab");
  const mounted = /\/dev\/loop3p1 is mounted at \/mnt\/found-by-fstab/;
  for (let tries = 0; tries < 2; tries++) {
    await assert.rejects(node.stage({ capability: block }), refusal("unavailable", mounted));
  }
  node.table = [];
  await node.stage({ capability: block });
  node.addMount("259:9", "/mnt/by-its-pod");
  await node.stage({ capability: block });
});

Deno.test("stage() refuses a volume whose namespace the node has taken below its map", async () => {
  const node = new FakeNode();
  Object.assign(node, { layers: ["/dev/dm-9 (vg-root, LVM)"], layersOn: node.device.path });
  await assert.rejects(
    node.stage({ capability: block, ...layered }),
    refusal("unavailable", /this node itself uses \/dev\/loop3, by \/dev\/dm-9 \(vg-root, LVM\)/),
  );
  assert.equal(node.stagingState?.staged, false);
  node.layers = [];
  await node.stage({ capability: block, ...layered });
});

for (const capability of [ext4, block]) {
  Deno.test(`stage() refuses a ${capability.access} volume that the node has taken, until that has ended, and then only if it is not staged`, async () => {
    const node = new FakeNode();
    node.layers = ["/dev/md127 (raid1)"];
    const taken = /this node itself uses .* by \/dev\/md127 \(raid1\).*mdadm --stop/;
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(node.stage({ capability }), refusal("unavailable", taken));
      assert.deepEqual([node.stagingState?.staged, node.formats, node.table], [false, [], []]);
    }
    node.layers = [];
    await node.stage({ capability });
    node.layers = ["/dev/md127 (raid1)"];
    await node.stage({ capability });
    assert.equal(node.stagingState?.staged, true);
    reboot(node);
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(node.stage({ capability }), refusal("unavailable", taken));
    }
  });
}
