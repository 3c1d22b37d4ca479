import { unsettled } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  call,
  ext4,
  FakeNode,
  injected,
  nqn,
  publishContext,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import { rejectsWith } from "../../../tests/fakes/volume_errors.ts";
import type { ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { disconnectUnused } from "../connections/teardown.ts";
import type { StageRequest } from "../stage/wish.ts";

const mapping = "rds-csi-pvc-1";
const header = 16n << 20n;
const passphrase = "correct horse battery staple";
const other = "another passphrase, as long as it";
const secrets = { encryptionPassphrase: passphrase };
const volumeContext = { encrypted: "true" };

/** The publish context of an encrypted volume. */
function encrypted(change: Record<string, string> = {}): Record<string, string> {
  return publishContext({ encrypted: "true", ...change });
}

async function stage(
  node: FakeNode,
  change: Partial<StageRequest> = {},
  context: Record<string, string> = {},
): Promise<void> {
  const publishContext = encrypted(context);
  const request = { ...node.stageRequest(), volumeContext, secrets, publishContext, ...change };
  await node.service.stage(request, call());
}

/** The commands of cryptsetup that were run, without their options. */
function commands(node: FakeNode): string[] {
  return node.processes.runs.filter(({ tool }) => tool === "cryptsetup").map(({ options }) =>
    options.args[0]!
  )
    .filter((command) => command !== "--version");
}

function isOpen(node: FakeNode): boolean {
  return node.mapper.maps.has(mapping);
}

Deno.test("an encrypted volume gets a header once, is used through its mapping, and is closed by its unstage", async () => {
  const node = new FakeNode();
  await stage(node);
  assert.deepEqual(commands(node), ["luksFormat", "open"]);
  const { luks } = node.device;
  assert.deepEqual([luks!.label, luks!.keys, luks!.inner.content], ["rds-csi", [passphrase], "ext4"]);
  const [mount] = node.table;
  assert.equal(mount!.deviceNumber, "253:40");
  const { device, header: state, staged } = node.stagingState!;
  assert.deepEqual([device!.deviceNumber, device!.sizeBytes], ["253:40", sizeBytes - header]);
  assert.deepEqual([state, staged], ["done", true]);
  await node.publish({ publishContext: encrypted() });
  await node.unpublish();
  await node.unstage();
  assert.deepEqual([isOpen(node), node.device.connected, node.stagingState], [false, false, undefined]);
  assert.ok(node.operations.indexOf("dmsetup remove") < node.operations.indexOf("disconnect"));
  assert.ok(node.operations.indexOf("unmount") < node.operations.indexOf("dmsetup remove"));
  await stage(node, {}, { mayFormat: "false", epoch: "1-0a0b0c0d" });
  assert.deepEqual(commands(node).slice(2), ["open"]);
  assert.equal(node.formats.length, 1);
});

Deno.test("a stage that is repeated opens nothing again, and needs the passphrase for nothing", async () => {
  const node = new FakeNode();
  await stage(node);
  await stage(node, { secrets: { encryptionPassphrase: other } });
  assert.deepEqual(commands(node), ["luksFormat", "open"]);
});

Deno.test("an encrypted block volume is the mapping, and its ends are zero", async () => {
  const node = new FakeNode();
  await stage(node, { capability: block });
  await node.publish({ capability: block, publishContext: encrypted() });
  assert.equal(node.device.luks!.inner.content, "blank");
  assert.equal(node.table[0]!.root, "/dm-40");
  const { usage } = { usage: await node.service.stats(volumeId, targetPath, call()) };
  assert.deepEqual(usage, { kind: "block", totalBytes: sizeBytes - header });
});

Deno.test("the passphrase goes to the standard input of cryptsetup, and nowhere else", async () => {
  const node = new FakeNode();
  await stage(node);
  for (const { line, options } of node.processes.runs) {
    assert.ok(!line.includes(passphrase), line);
    if (options.args.includes("--key-file=-")) assert.equal(options.input, passphrase);
  }
  const [format] = node.processes.runs.filter(({ options }) => options.args[0] === "luksFormat");
  assert.equal(
    format!.line,
    "cryptsetup luksFormat /proc/1/fd//dev/loop3 --type luks2 --label rds-csi-unfinished --offset 32768 " +
      "--luks2-metadata-size 16384 --cipher aes-xts-plain64 --key-size 512 --hash sha256 " +
      "--pbkdf argon2id --pbkdf-memory 131072 --iter-time 2000 --key-file=- --batch-mode --disable-locks",
  );
  const files = [...node.paths.nodes.values()].map(({ text = "" }) => text).join("\n");
  assert.ok(!files.includes(passphrase));
  assert.ok(!node.reported.join().includes(passphrase));
});

Deno.test("parameters set what a guess costs, and whether trims pass", async () => {
  const node = new FakeNode();
  const context = { ...volumeContext, allowDiscards: "true", pbkdfMemory: "64", pbkdfTime: "500" };
  await stage(node, { volumeContext: context });
  const [format] = node.processes.runs.filter(({ options }) => options.args[0] === "luksFormat");
  assert.match(format!.line, / --pbkdf-memory 65536 --iter-time 500 /);
  assert.ok(node.cryptsetup.flags.get(mapping)!.includes("--allow-discards"));
  assert.ok(!node.cryptsetup.flags.get(mapping)!.includes("--readonly"));
});

const refusedContents = {
  "a plain file system": { content: "ext4" },
  "data of no known kind": { content: "garbage" },
  "another one's header": {
    content: "luks",
    luks: { keys: [passphrase], label: "somebody", inner: {} },
  },
} as const;

for (const [what, change] of Object.entries(refusedContents)) {
  Deno.test(`a device with ${what} is refused, and nothing is written`, async () => {
    const node = new FakeNode();
    Object.assign(node.device, change);
    await rejectsWith(stage(node), "precondition");
    assert.deepEqual(commands(node), []);
    assert.ok(!node.operations.includes("erase"));
    assert.equal(node.device.content, change.content);
    assert.equal(node.device.connected, false);
  });
}

Deno.test("a blank device is refused where the record does not say that it was never written", async () => {
  const node = new FakeNode();
  await rejectsWith(
    stage(node, {}, { mayFormat: "false" }),
    "precondition",
    /not on record as never written/,
  );
  const other = new FakeNode();
  await rejectsWith(
    stage(other, {}, { size: String(sizeBytes - 512n) }),
    "precondition",
    /its size is not the one/,
  );
  assert.deepEqual([...commands(node), ...commands(other)], []);
});

Deno.test("a header that another node has begun is refused, and one that it has completed is opened", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  node.device.luks!.label = "rds-csi-unfinished";
  for (const mayFormat of ["false", "true"]) {
    await rejectsWith(stage(node, {}, { mayFormat }), "precondition", /an incomplete encryption header/);
  }
  node.device.luks!.label = "rds-csi";
  await stage(node);
  assert.equal(commands(node).filter((command) => command === "luksFormat").length, 1);
});

Deno.test("a header is not written again once it was complete, whatever the record says", async () => {
  const node = new FakeNode();
  await stage(node, { capability: block });
  await node.unstage();
  node.device.luks!.inner.content = "garbage"; // What a pod of another node has written meanwhile.
  await stage(node, { capability: block });
  node.setStagingState({ header: "started", staged: false });
  await stage(node, { capability: block });
  assert.equal(node.device.luks!.inner.content, "garbage");
  assert.equal(commands(node).filter((command) => command === "luksFormat").length, 1);
});

Deno.test("a volume of a class without encryption refuses a device with a header", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  await rejectsWith(node.stage(), "precondition", /it holds crypto_LUKS, not ext4/);
  assert.equal(node.device.content, "luks");
});

Deno.test("record and volume context have to agree about encryption", async () => {
  const node = new FakeNode();
  await rejectsWith(stage(node, { volumeContext: {} }), "invalid", /published as encrypted=true/);
  await rejectsWith(node.stage({ volumeContext, secrets }), "invalid", /says encrypted=true/);
  assert.equal(node.operations.length, 0);
});

Deno.test("a secret without a passphrase, or with a short one, is invalid", async () => {
  const node = new FakeNode();
  const short = "x".repeat(19);
  const wrongOnes: Record<string, string>[] = [
    {},
    { encryptionPassphrase: "" },
    { encryptionPassphrase: short },
    { ...secrets, encryptionPassphraseNew: short },
  ];
  for (const wrong of wrongOnes) {
    await rejectsWith(stage(node, { secrets: wrong }), "invalid", /secret of the encrypted volume/);
  }
  assert.equal(node.operations.length, 0);
});

Deno.test("a wrong passphrase is unauthenticated, changes nothing, and is not tried again at once", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unpublish();
  await node.unstage();
  const before = commands(node).length;
  const wrong = { secrets: { encryptionPassphrase: other } };
  for (let at = 0; at < 5; at++) await rejectsWith(stage(node, wrong), "unauthenticated");
  assert.equal(commands(node).length, before + 1);
  await node.clock.advance(10_000);
  for (let at = 0; at < 5; at++) await rejectsWith(stage(node, wrong), "unauthenticated");
  assert.equal(commands(node).length, before + 2);
  await node.clock.advance(10_000);
  await rejectsWith(stage(node, wrong), "unauthenticated");
  assert.equal(commands(node).length, before + 2, "the pause has doubled");
  assert.deepEqual([node.device.luks!.keys, node.device.luks!.inner.content], [[passphrase], "ext4"]);
  assert.equal(node.device.connected, false);
  assert.equal(node.events.reported.filter((event) => event === "passphrase refused").length, 11);
  await stage(node);
  assert.ok(isOpen(node));
});

Deno.test("a volume that is only read is opened read-only", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  const capability: Capability = { ...ext4, mode: "multi-node-reader-only" };
  await stage(node, { capability }, { readonly: "true", mayFormat: "false" });
  assert.ok(node.cryptsetup.flags.get(mapping)!.includes("--readonly"));
});

Deno.test("the passphrase is replaced by the next one at a stage, once, by a node that is alone", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  const rotating = { secrets: { ...secrets, encryptionPassphraseNew: other } };
  for (let at = 0; at < 2; at++) {
    await stage(node, rotating);
    assert.deepEqual(node.device.luks!.keys, [other]);
    await node.unstage();
  }
  assert.equal(commands(node).filter((command) => command === "luksAddKey").length, 1);
  await stage(node, { secrets: { encryptionPassphrase: other } });
});

Deno.test("a node that shares a volume, or only reads it, changes no key and opens it with either passphrase", async () => {
  const shared: Capability = { access: "block", mode: "multi-node-multi-writer" };
  const readers: Capability = { ...ext4, mode: "multi-node-reader-only" };
  for (const capability of [shared, readers]) {
    for (const keys of [[passphrase], [other]]) {
      const node = new FakeNode();
      await stage(node, { capability: capability.access === "block" ? block : ext4 });
      await node.unstage();
      node.device.luks!.keys = keys;
      const rotating = { secrets: { ...secrets, encryptionPassphraseNew: other }, capability };
      await stage(node, rotating, { readonly: String(capability === readers), mayFormat: "false" });
      assert.ok(isOpen(node));
      assert.deepEqual(node.device.luks!.keys, keys);
    }
  }
});

Deno.test("a volume that is shared, or stays staged, keeps its passphrase, and needs both in the Secret", async () => {
  const rotating = { ...secrets, encryptionPassphraseNew: other };
  const rotated = { encryptionPassphrase: other };
  const shared: Capability = { access: "block", mode: "multi-node-multi-writer" };
  for (const keepsStaged of [true, false]) {
    const node = new FakeNode();
    const capability = keepsStaged ? block : shared;
    await stage(node, { capability });
    if (!keepsStaged) await node.unstage();
    await stage(node, { capability, secrets: rotating }, { mayFormat: "false" });
    assert.deepEqual(node.device.luks!.keys, [passphrase]);
    await node.unstage();
    const restart = (secrets: StageRequest["secrets"]) =>
      stage(node, { capability, secrets: secrets! }, { mayFormat: "false" });
    await rejectsWith(restart(rotated), "unauthenticated");
    await restart(rotating);
  }
});

Deno.test("an encrypted volume grows with its device, without a passphrase", async () => {
  const node = new FakeNode();
  await stage(node);
  node.device.sizeBytes = sizeBytes * 2n;
  const range = { requiredBytes: sizeBytes * 2n - header, limitBytes: 0n };
  assert.equal(
    await node.service.expand({ volumeId, volumePath: stagingPath, range }, call()),
    sizeBytes * 2n - header,
  );
  assert.equal(commands(node).at(-1), "resize");
  const more = { volumeId, volumePath: stagingPath, range: { ...range, requiredBytes: sizeBytes * 2n } };
  const expanding = node.service.expand(more, call());
  await Promise.all([rejectsWith(expanding, "precondition", /keeps its size/), node.clock.advance(20_000)]);
});

Deno.test("a mapping on a device that is gone is dropped by the next stage of the same epoch", async () => {
  for (const capability of [ext4, block]) {
    const node = new FakeNode();
    Object.assign(node.device, { uniqueId: "a".repeat(32) });
    await stage(node, { capability });
    Object.assign(node.device, { path: "/dev/loop9", deviceNumber: "7:9", uniqueId: "b".repeat(32) });
    node.paths.nodes.set("/dev/loop9", { kind: "block", deviceNumber: "7:9" });
    node.showDevices();
    await stage(node, { capability }, { mayFormat: "false" });
    assert.equal(node.mapper.maps.get(mapping)!.table!.path, "7:9");
    assert.equal(node.table.length, capability === ext4 ? 1 : 0);
    await node.unstage();
    assert.deepEqual([isOpen(node), node.device.connected], [false, false]);
  }
});

Deno.test("a mapping on a device that is gone stays while a pod has it", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.publish({ publishContext: encrypted() });
  Object.assign(node.device, { path: "/dev/loop9", deviceNumber: "7:9" });
  node.paths.nodes.set("/dev/loop9", { kind: "block", deviceNumber: "7:9" });
  node.showDevices();
  await assert.rejects(stage(node), unsettled("in-use", /is (mounted|bound) at/));
});

Deno.test("other mount options of an encrypted volume are refused while a pod has its mapping, and taken after a reboot of the node", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.publish({ publishContext: encrypted() });
  const edited = { mountFlags: ["noatime"] };
  node.device.connected = false; // The kernel has given up the connection.
  node.table = node.table.filter(({ mountPoint }) => mountPoint === targetPath);
  await assert.rejects(stage(node, edited), unsettled("in-use", /staged in another way/));
  node.table = [];
  node.mapper.maps.clear();
  node.showDevices();
  await stage(node, edited, { mayFormat: "false" });
  assert.deepEqual([isOpen(node), node.table.length, node.stagingState?.header], [true, 1, "done"]);
});

Deno.test("an unstage without a state file closes the mapping, and refuses while it is mounted", async () => {
  const node = new FakeNode();
  await stage(node);
  node.paths.nodes.delete(`/state/volumes/${volumeId}.json`);
  node.addMount("253:40", "/mnt");
  await rejectsWith(node.unstage(), "in-use");
  node.table = node.table.filter(({ mountPoint }) => mountPoint !== "/mnt");
  node.device.connected = false; // Not even a connection is left.
  await node.unstage();
  assert.equal(isOpen(node), false);
});

Deno.test("a disconnect closes the mapping of a device that is gone first, and is refused while the mapping is open", async () => {
  const node = new FakeNode();
  await stage(node);
  node.table = [];
  node.deps.connector.find = () => Promise.resolve(undefined);
  node.held.add("253:40");
  await rejectsWith(disconnectUnused(node.deps, nqn, call()), "in-use");
  assert.ok(node.device.connected && isOpen(node));
  node.held.clear();
  node.operations.length = 0;
  await disconnectUnused(node.deps, nqn, call());
  assert.deepEqual(node.operations, ["dmsetup remove", "disconnect"]);
  assert.equal(isOpen(node), false);
});

Deno.test("a fenced volume is cut off before it is unmounted and closed", async () => {
  const node = new FakeNode();
  await stage(node);
  node.connections.set(nqn, { state: "connecting", stateName: "connecting" });
  node.offered = () => [nqn.replace("1-0a0b0c0d", "2-0a0b0c0d")];
  await node.unstage();
  const order = ["forceDisconnect", "unmount", "dmsetup remove"].map((step) => node.operations.indexOf(step));
  assert.deepEqual(order, order.toSorted((a, b) => a - b));
  assert.equal(isOpen(node), false);
});

Deno.test("a pod ends that has a mapping which an older record does not name, also without a connection", async () => {
  for (const capability of [ext4, block]) {
    const node = new FakeNode();
    await stage(node, { capability });
    const { device } = node.stagingState!;
    await node.publish({ capability, publishContext: encrypted() });
    const earlier = { ...device!, deviceNumber: "253:7", sizeBytes: String(device!.sizeBytes) as never };
    node.setStagingState({ device: earlier, mountedAs: "253:7", published: [] });
    node.device.connected = false;
    node.showDevices();
    await node.unpublish();
    assert.deepEqual(
      node.table.map(({ mountPoint }) => mountPoint),
      capability === ext4 ? [stagingPath] : [],
    );
  }
});

Deno.test("the mapping of a device that is gone is closed by the kernel once nothing has it open", async () => {
  const node = new FakeNode();
  await stage(node);
  node.device.connected = false;
  node.showDevices();
  node.held.add("253:40"); // A process that cannot be seen.
  await rejectsWith(node.unstage(), "in-use", /its user was not found; searched: .*mount namespaces/);
  assert.ok(node.mapper.deferred.has(mapping));
  node.held.clear();
  node.showDevices();
  assert.equal(isOpen(node), false);
  await node.unstage();
  assert.equal(node.stagingState, undefined);
});

Deno.test("a volume is refused on a node that cannot decrypt, and where another volume's device is bound", async () => {
  const node = new FakeNode();
  node.mapper.hasMultipath = false;
  await rejectsWith(stage(node), "precondition", /cannot decrypt it: .*: the kernel has no dm-crypt/);
  node.mapper.hasMultipath = true;
  node.addMount("0:6", "/bound", { filesystem: "devtmpfs", root: "/loop3" });
  node.paths.nodes.set("/bound", { kind: "block", deviceNumber: "7:3" });
  await rejectsWith(stage(node), "in-use", /is bound at/);
  assert.deepEqual(commands(node), []);
});

Deno.test("an encrypted volume has no device layer, whatever the node's setting is", async () => {
  const node = new FakeNode();
  Object.assign(node.deps.settings, { deviceLayer: "multipath" });
  await stage(node);
  assert.equal(node.stagingState!.map, "crypt");
  assert.equal(node.mapper.maps.size, 1);
});

Deno.test("a volume that was opened by hand, and so takes no writes, is opened again by a stage", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  node.device.connected = true;
  node.showDevices();
  const device = (await node.deps.connector.find(nqn, call()))!;
  const options = { readOnly: true, allowDiscards: false };
  await node.deps.encryption!.open(mapping, device as ProvenDevice, passphrase, options, call());
  await stage(node);
  assert.ok(!node.cryptsetup.flags.get(mapping)!.includes("--readonly"));
  assert.equal(node.device.readOnly, false);
});

Deno.test("an encrypted volume lost no data only because its file system is being checked", async () => {
  const node = new FakeNode();
  await stage(node);
  await node.unstage();
  const { check } = node.deps.filesystems;
  let reasons: readonly string[] = [];
  node.deps.filesystems.check = async (...args) => {
    const { problems } = await node.service.volumeHealth(volumeId, call());
    reasons = problems.map(({ reason }) => reason);
    await check.apply(node.deps.filesystems, args);
  };
  await stage(node, {}, { mayFormat: "false" });
  assert.deepEqual(reasons, ["NotStaged"]);
});

Deno.test("an encrypted volume is published after a failed mkfs, and a stage with other mount options", async () => {
  const node = new FakeNode();
  node.before = (operation) => {
    if (operation === "format") throw injected;
  };
  await assert.rejects(stage(node));
  node.before = () => {};
  const edited = { mountFlags: ["noatime"] };
  await stage(node, edited);
  await node.publish({ publishContext: encrypted() });
  assert.deepEqual((await node.service.volumeHealth(volumeId, call())).problems, []);
  assert.equal(node.stagingState?.namespaceBytes, sizeBytes);
});

Deno.test("a stage drops a connection of another epoch beside the one through which the mapping is used", async () => {
  const node = new FakeNode();
  await stage(node);
  const other = nqn.replace("1-0a0b0c0d", "2-0a0b0c0d");
  node.devices.set(other, node.newDevice({ connected: true, path: "/dev/loop9", deviceNumber: "7:9" }));
  await stage(node);
  assert.deepEqual([node.devices.get(other)!.connected, node.device.connected], [false, true]);
  assert.deepEqual(node.table.map(({ mountPoint }) => mountPoint), [stagingPath]);
});
