import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { VolumeError } from "../../volume/errors.ts";
import { filesystemNamed, inOwnWords, parseNodeParameters, parsePublishContext } from "./contexts.ts";
import {
  block,
  ext4,
  FakeNode,
  publishContext,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";

const context = {
  nvmeAddress: "10.0.0.1",
  nvmePort: "4420",
  nqn: "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d",
  epoch: "1-0a0b0c0d",
  size: "1073741824",
  readonly: "false",
  mayFormat: "true",
  imported: "false",
  nvme_address: "10.0.0.1",
};

Deno.test("parsePublishContext() reads every key and ignores others", () => {
  assert.deepEqual(parsePublishContext(context, "pvc-1"), {
    nqn: context.nqn,
    epoch: context.epoch,
    addresses: ["10.0.0.1"],
    port: 4420,
    sizeBytes: 1073741824n,
    readOnly: false,
    mayFormat: true,
    imported: false,
    mayReplay: false,
    machine: undefined,
    needsLayer: false,
    encrypted: false,
  });
});

for (const [key, field] of [["encrypted", "encrypted"], ["layer", "needsLayer"]] as const) {
  Deno.test(`parsePublishContext() reads what must lie above the export: ${key}`, () => {
    const read = parsePublishContext({ ...context, [key]: "true" }, "pvc-1");
    assert.deepEqual(read, { ...parsePublishContext(context, "pvc-1"), [field]: true });
    for (const value of ["", "1"]) {
      const wrong = () => parsePublishContext({ ...context, [key]: value }, "pvc-1");
      assert.throws(wrong, refusal("invalid", new RegExp(`key=${key}`)), value);
    }
  });
}

Deno.test("parsePublishContext() reads the machine, and refuses an invalid one", () => {
  assert.equal(parsePublishContext({ ...context, machine: "0a0b0c0d" }, "pvc-1").machine, "0a0b0c0d");
  for (const machine of ["", "0A0B0C0D", "0a0b0c0", "none"]) {
    assert.throws(() => parsePublishContext({ ...context, machine }, "pvc-1"), refusal("invalid", /machine/));
  }
});

Deno.test("parsePublishContext() reads the name of a claim, and leaves out an invalid one", () => {
  const claimOf = (claim: string) => parsePublishContext({ ...context, claim }, "pvc-1").claim;
  assert.deepEqual(claimOf("apps/data-0.web"), { namespace: "apps", name: "data-0.web" });
  for (const wrong of ["", "data", "apps/", "apps/a b", "apps/$(id)", "a/b/c"]) {
    assert.equal(claimOf(wrong), undefined, wrong);
  }
});

Deno.test("parsePublishContext() takes absent flags as false", () => {
  const { readonly: _r, mayFormat: _m, ...rest } = context;
  const parsed = parsePublishContext(rest, "pvc-1");
  assert.deepEqual([parsed.readOnly, parsed.mayFormat], [false, false]);
});

Deno.test("parsePublishContext() accepts the NQN without epoch that a migrated volume keeps", () => {
  const nqn = "nqn.2000-02.com.mikrotik:pvc-1";
  assert.equal(parsePublishContext({ ...context, nqn }, "pvc-1").nqn, nqn);
});

const wrong: readonly [string, string][] = [
  ["nvmeAddress", ""],
  ["nvmeAddress", "-x"],
  ["nvmeAddress", "a b"],
  ["nvmePort", "0"],
  ["nvmePort", "65536"],
  ["nvmePort", "abc"],
  ["nqn", ""],
  ["nqn", "nqn.2000-02.com.mikrotik:a/b"],
  ["nqn", "nqn.2000-02.com.mikrotik:../pvc-1"],
  ["nqn", `nqn.2000-02.com.mikrotik:${"x".repeat(200)}:pvc-1:1-0a0b0c0d`],
  ["epoch", ""],
  ["epoch", "1 2"],
  ["size", "0"],
  ["size", "-5"],
  ["size", "1e9"],
  ["size", ""],
  ["readonly", "yes"],
  ["mayFormat", "1"],
  ["mayReplay", "yes"],
  ["mayFormat", ""],
];

for (const [key, value] of wrong) {
  Deno.test(`parsePublishContext() throws invalid for ${key}=${JSON.stringify(value.slice(0, 40))}`, () => {
    assert.throws(
      () => parsePublishContext({ ...context, [key]: value }, "pvc-1"),
      (error) => VolumeError.is(error, "invalid") && error.message.includes(key),
    );
  });
}

for (
  const nqn of ["nqn.2000-02.com.mikrotik:pvc-11:1-0a0b0c0d", "nqn.2000-02.com.mikrotik:pvc-1:2-0a0b0c0d"]
) {
  Deno.test(`parsePublishContext() throws identity-mismatch for the NQN ${nqn}`, () => {
    assert.throws(
      () => parsePublishContext({ ...context, nqn }, "pvc-1"),
      refusal("identity-mismatch"),
    );
  });
}

Deno.test("parsePublishContext() does not take an epoch in another volume's NQN for a volume", () => {
  assert.throws(
    () => parsePublishContext(context, "1-0a0b0c0d"),
    refusal("identity-mismatch"),
  );
});

Deno.test("parseNodeParameters() leaves everything to defaults when the context is empty", () => {
  assert.deepEqual(parseNodeParameters({ backend: "default", volumePath: "/p" }, "ext4"), {
    connection: {
      ctrlLossTmo: undefined,
      reconnectDelay: undefined,
      keepAliveTmo: undefined,
      nrIoQueues: undefined,
      fastIoFailTmo: undefined,
      digests: [],
    },
    encryption: {
      encrypted: false,
      allowDiscards: false,
      keyCost: { memoryMiB: undefined, timeMs: undefined },
    },
    deviceLayer: undefined,
    fsLabel: undefined,
    fsck: "preen",
    mkfsOptions: [],
  });
});

Deno.test("parseNodeParameters() reads every key", () => {
  const values = {
    ctrlLossTmo: "-1",
    reconnectDelay: "5",
    keepAliveTmo: "10",
    nrIoQueues: "4",
    fastIoFailTmo: "60",
    hdrDigest: "true",
    dataDigest: "true",
    encrypted: "true",
    allowDiscards: "true",
    pbkdfMemory: "64",
    pbkdfTime: "500",
    deviceLayer: "auto",
    fsLabel: "data",
    fsckMode: "off",
    mkfsOptions: "-I 512",
  };
  assert.deepEqual(parseNodeParameters(values, "ext4"), {
    connection: {
      ctrlLossTmo: -1,
      reconnectDelay: 5,
      keepAliveTmo: 10,
      nrIoQueues: 4,
      fastIoFailTmo: 60,
      digests: ["header", "data"],
    },
    encryption: { encrypted: true, allowDiscards: true, keyCost: { memoryMiB: 64, timeMs: 500 } },
    deviceLayer: "auto",
    fsLabel: "data",
    fsck: "off",
    mkfsOptions: ["-I", "512"],
  });
});

Deno.test("parseNodeParameters() leaves a keep-alive of 0 to the kernel, also where the legacy driver has written it", () => {
  const earlier = { nqn: "nqn.2000-02.com.mikrotik:pvc-1", ctrlLossTmo: "0", keepAliveTmo: "0" };
  for (const values of [{ keepAliveTmo: "0" }, earlier]) {
    const { connection } = parseNodeParameters(values, "ext4");
    assert.deepEqual([connection.keepAliveTmo, connection.ctrlLossTmo], [undefined, undefined]);
  }
});

Deno.test("parseNodeParameters() reads the -e panic of a volume made before it was refused as -e remount-ro", () => {
  const { mkfsOptions } = parseNodeParameters({ mkfsOptions: "-m 1 -e panic" }, "ext4");
  assert.deepEqual(mkfsOptions, ["-m", "1", "-e", "remount-ro"]);
});

const wrongParameters: readonly [string, string][] = [
  ["ctrlLossTmo", "-2"],
  ["ctrlLossTmo", "long"],
  ["reconnectDelay", "0"],
  ["keepAliveTmo", "1.5"],
  ["nrIoQueues", "1000"],
  ["fastIoFailTmo", "-1"],
  ["fsLabel", "a label"],
  ["fsLabel", "thirteen-long"],
  ["fsLabel", "-F"],
  ["deviceLayer", "always"],
  ["fsckMode", "yes"],
  ["mkfsOptions", "-F"],
];

for (const [key, value] of wrongParameters) {
  Deno.test(`parseNodeParameters() throws invalid for ${key}=${value}`, () => {
    assert.throws(
      () => parseNodeParameters({ [key]: value }, "ext4"),
      refusal("invalid"),
    );
  });
}

const nqn = `nqn.2000-02.com.mikrotik:${volumeId}`;
/** What the legacy driver's controller publishes. */
const earlier = { nvme_address: "10.0.0.1", nvme_port: "4420", nvme_nqn: nqn, fs_type: "ext4" };
/** The volume context of its volumes. */
const volume = {
  rdsAddress: "10.0.0.1",
  nvmeAddress: "10.0.0.9",
  nvmePort: "4421",
  nqn,
  volumePath: "/pool/csi/pvc-1.img",
  // The legacy driver's values where its StorageClass has none; 0 stands for the kernel's default.
  ctrlLossTmo: "-1",
  reconnectDelay: "5",
  keepAliveTmo: "0",
  migrationTimeoutSeconds: "300",
};
/** What this driver's controller publishes for a migrated volume. */
const takenOver = publishContext({ nqn, epoch: "0-00000000", mayFormat: "false" });

/** A node that can reach the volume under the legacy driver's NQN. */
function earlierNode(change: Parameters<FakeNode["newDevice"]>[0] = {}): FakeNode {
  const node = new FakeNode();
  node.devices.clear();
  node.devices.set(nqn, node.newDevice({ content: "ext4", ...change }));
  return node;
}

const stage = (
  node: FakeNode,
  context: Record<string, string>,
  capability = ext4 as typeof ext4 | typeof block,
) =>
  node.service.stage(
    { ...node.stageRequest({ capability }), publishContext: context, volumeContext: volume },
    { requestId: "t", signal: new AbortController().signal, deadlineMs: Infinity },
  );

Deno.test("inOwnWords() returns a context of this driver unchanged, whatever else is in it", () => {
  for (const own of [publishContext(), { ...earlier, epoch: "1-0a0b0c0d" }, { ...earlier, size: "1" }, {}]) {
    assert.equal(inOwnWords(own, {}), own);
  }
});

Deno.test("parsePublishContext() reads the legacy driver's, the publish context before the volume context", () => {
  const parsed = {
    nqn,
    epoch: "0-00000000",
    addresses: ["10.0.0.1"],
    port: 4420,
    sizeBytes: 0n,
    readOnly: false,
    mayFormat: false,
    imported: true,
    mayReplay: false,
    needsLayer: false,
    encrypted: false,
    machine: undefined,
  };
  assert.deepEqual(parsePublishContext(earlier, volumeId), parsed);
  assert.deepEqual(parsePublishContext(earlier, volumeId, volume), parsed);
  assert.deepEqual(parsePublishContext({}, volumeId, volume), {
    ...parsed,
    addresses: ["10.0.0.9"],
    port: 4421,
  });
});

Deno.test("parsePublishContext() refuses a legacy context that is incomplete, or another volume's", () => {
  const refused = (context: Record<string, string>, kind: "invalid" | "identity-mismatch") =>
    assert.throws(() => parsePublishContext(context, volumeId), (error) => VolumeError.is(error, kind));
  refused({ ...earlier, nvme_nqn: `${nqn}1` }, "identity-mismatch");
  refused({ ...earlier, nvme_nqn: `${nqn}:1-0a0b0c0d` }, "identity-mismatch");
  refused({ ...earlier, nvme_nqn: "" }, "invalid");
  refused({ ...earlier, nvme_address: "" }, "invalid");
  refused({ ...earlier, nvme_port: "0" }, "invalid");
  // A context of this driver must have a size.
  refused({ ...takenOver, size: "0" }, "invalid");
});

Deno.test("filesystemNamed() goes by the volume, then by what the legacy driver published", () => {
  assert.equal(filesystemNamed({ fs_type: "xfs" }, { fsType: "ext4" }), "ext4");
  assert.equal(filesystemNamed({ fs_type: "xfs" }, {}), "xfs");
  assert.equal(filesystemNamed({}, {}), "");
});

Deno.test("a node stages and publishes what the legacy controller publishes, and continues under this driver's controller", async () => {
  const node = earlierNode();
  await stage(node, earlier);
  assert.equal(node.stagingState?.sizeBytes, sizeBytes);
  await node.publish({ publishContext: earlier });
  const before = [...node.operations];
  const locations = () => node.table.map(({ mountPoint, deviceNumber }) => `${deviceNumber} ${mountPoint}`);
  const table = locations();
  // The controller was replaced, and the kubelet calls again.
  await stage(node, takenOver);
  await node.publish({ publishContext: takenOver });
  await node.publish({ publishContext: takenOver, targetPath: "/kubelet/pods/1/other" });
  assert.deepEqual(locations().slice(0, table.length), table);
  const since = node.operations.slice(before.length);
  assert.ok(
    !since.some((operation) => /^(format|disconnect|unmount)/.test(operation)),
    since.join(),
  );
  await node.unpublish();
  await node.unpublish("/kubelet/pods/1/other");
  await node.unstage();
  assert.equal(node.devices.get(nqn)!.connected, false);
  assert.deepEqual(node.table, []);
  assert.equal(node.stagingState, undefined);
});

Deno.test("a block volume of the legacy controller's is staged and published", async () => {
  const node = earlierNode({ content: "garbage" });
  await stage(node, { ...earlier, fs_type: "" }, block);
  await node.publish({ publishContext: earlier, capability: block });
  assert.equal(node.table.filter(({ mountPoint }) => mountPoint === targetPath).length, 1);
});

Deno.test("what the legacy node has staged is used as it is: mounted, with no state file", async () => {
  for (const context of [earlier, takenOver]) {
    const node = earlierNode({ connected: true });
    node.paths.nodes.set(stagingPath, { kind: "directory" });
    node.addMount("7:3", stagingPath, { filesystem: "ext4" });
    await stage(node, context);
    assert.equal(node.stagingState?.staged, true);
    assert.deepEqual(node.formats, []);
    assert.equal(node.table.length, 1);
    await node.publish({ publishContext: context });
    assert.equal(node.table.length, 2);
  }
});

Deno.test("nothing that the legacy controller publishes is formatted, however blank it looks", async () => {
  for (const context of [earlier, { ...earlier, mayFormat: "true" }, takenOver]) {
    const node = earlierNode({ content: "blank" });
    await assert.rejects(
      stage(node, context),
      refusal("precondition", /rds-csi allow-format pvc-1/),
    );
    assert.deepEqual(node.formats, []);
    assert.equal(node.devices.get(nqn)!.connected, false);
  }
});
