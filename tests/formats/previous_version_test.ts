// This version reads what the previous version wrote, and the other way round: records on the router, the state of a
// node, and publish contexts. `previous.json` has the texts of that version. A release may only add to them, because a
// changed text strands the volumes of a cluster that rolls back.
import assert from "node:assert/strict";
import { publishVolume } from "../../src/controller/attachments/publish.ts";
import { unpublishVolume } from "../../src/controller/attachments/unpublish.ts";
import { parsePublishContext } from "../../src/node/stage/contexts.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import { legacyEpoch } from "../../src/volume/model/epoch.ts";
import {
  formatComment,
  nodeDigest,
  parseComment,
  type RecordComment,
} from "../../src/volume/model/record.ts";
import { importedSource } from "../../src/volume/model/sources.ts";
import {
  formatStagingState,
  parseStagingState,
  type StagingState,
} from "../../src/volume/model/staging_state.ts";
import {
  aPublish,
  inTime,
  sharedBlock,
  testContext,
  testController,
  testParameters,
  writer,
} from "../fakes/controller_deps.ts";
import { aDisk, aHolder, aRecord, aSnapshotId, testPrefix } from "../fakes/records.ts";
import previous from "./previous.json" with { type: "json" };

const epoch = { counter: 7, nonce: "0a1b2c3d" };

function bare(record: Parameters<typeof aRecord>[0]): RecordComment {
  return { record: aRecord(record), before: "", after: "" };
}

const records: Readonly<Record<keyof typeof previous.records, RecordComment>> = {
  "new": bare({ epoch: { counter: 0, nonce: "00c0ffee" } }),
  "published for the first time": bare({ epoch: { ...epoch, counter: 1 }, holders: [aHolder("node-1")] }),
  "withdrawn": bare({ epoch, withdrawnAtSeconds: 1_700_000_123 }),
  "withdrawn at a time that is not known": bare({ epoch, withdrawnAtSeconds: Number.MAX_SAFE_INTEGER }),
  "migrating": bare({
    capabilities: "block/x",
    blankEpoch: 0,
    epoch,
    holders: ["a", "b"].map((node) => aHolder(node, { mode: "multi-node-multi-writer" })),
  }),
  "migrating between machines that are known": bare({
    capabilities: "block/x",
    blankEpoch: 0,
    epoch,
    holders: [["a", "0a0b0c0d"], ["b", "1a1b1c1d"]].map(([node, machine]) =>
      aHolder(node!, { mode: "multi-node-multi-writer", machine: machine! })
    ),
  }),
  "left by a node that was not shut out": bare({
    capabilities: "block/x",
    blankEpoch: 0,
    epoch,
    holders: [aHolder("b", { mode: "multi-node-multi-writer" })],
    unfenced: { nodeDigest: nodeDigest("a"), sinceSeconds: 1_700_000_000, machine: "0a0b0c0d" },
  }),
  "read by several": bare({
    capabilities: "xfs/n",
    epoch,
    holders: ["a", "b", "c"].map((node) => aHolder(node, { mode: "multi-node-reader-only", readOnly: true })),
  }),
  "of each mode of one node": bare({
    capabilities: "ext4/morw",
    epoch,
    holders: [
      aHolder("w"),
      aHolder("r", { mode: "single-node-reader-only" }),
      aHolder("o", { mode: "single-node-single-writer" }),
      aHolder("m", { mode: "single-node-multi-writer" }),
    ],
  }),
  "cloned and grown": bare({ source: "v:pvc-0", growths: 37, blankEpoch: 0, epoch }),
  "restored": bare({ source: `s:${aSnapshotId("s")}`, blankEpoch: 0 }),
  "imported, with a note": {
    ...bare({ source: importedSource("films", "/pool/films.img"), blankEpoch: 0, withdrawnAtSeconds: 1 }),
    before: "films ",
    after: " (Ann's)",
  },
  "of the legacy driver": bare({
    epoch: legacyEpoch,
    blankEpoch: 0,
    growths: 46_655,
    holders: [aHolder("node-1")],
  }),
};

const staged: StagingState = {
  volumeId: "pvc-1",
  nqn: `${testPrefix}:pvc-1:7-0a1b2c3d`,
  epoch: "7-0a1b2c3d",
  addresses: ["10.0.0.1", "fd00::1"],
  port: 4420,
  kind: "ext4",
  readOnly: false,
  mountFlags: ["noatime"],
  stagingPath: "/var/lib/kubelet/plugins/kubernetes.io/csi/rds.csi.srvlab.io/1/globalmount",
  sizeBytes: 1n << 30n,
  device: { deviceNumber: "259:3", uniqueId: "0123456789abcdef0123456789abcdef", sizeBytes: 1n << 30n },
  mkfs: "done",
  everMounted: true,
  mountedAs: "259:3",
  rootOpened: true,
  staged: true,
  published: [{ targetPath: "/var/lib/kubelet/pods/1/mount", readOnly: false }],
};

const stagingStates: Readonly<Record<keyof typeof previous.stagingStates, StagingState>> = {
  "staged and published": staged,
  "about to connect": {
    ...staged,
    device: undefined,
    mkfs: "none",
    everMounted: false,
    mountedAs: undefined,
    rootOpened: false,
    staged: false,
    published: [],
  },
  "making a file system": {
    ...staged,
    mkfs: "started",
    everMounted: false,
    mountedAs: undefined,
    staged: false,
  },
  "raw block, read only, missed by its target": {
    ...staged,
    kind: "block",
    readOnly: true,
    mountFlags: [],
    mkfs: "none",
    missed: { lastMissedMs: 1_700_000_000_000, missedForMs: 45_000 },
  },
  "of a volume of several routers": { ...staged, volumeId: "second/pvc-1", kind: "xfs" },
};

function machineOf(context: object): string | undefined {
  return "machine" in context ? String(context.machine) : undefined;
}

/** How a node holds the volume of each publish context. The volume has been published to that node before. */
const uses: Readonly<
  Record<keyof typeof previous.publishContexts, {
    readonly comment: keyof typeof records;
    readonly nodeId: string;
    readonly capability: Capability;
    readonly readOnly?: boolean;
    readonly exportNqn?: string;
  }>
> = {
  "a file system that may be made": {
    comment: "published for the first time",
    nodeId: "node-1",
    capability: writer,
  },
  "a shared block device": { comment: "migrating", nodeId: "b", capability: sharedBlock },
  "a shared block device of a machine that is known": {
    comment: "migrating between machines that are known",
    nodeId: "b",
    capability: sharedBlock,
  },
  "a read-only file system": {
    comment: "read by several",
    nodeId: "c",
    capability: { access: "mount", filesystem: "xfs", mode: "multi-node-reader-only" },
    readOnly: true,
  },
  "what the legacy driver exported": {
    comment: "of the legacy driver",
    nodeId: "node-1",
    capability: writer,
    exportNqn: `${testPrefix}:pvc-1`,
  },
};

/** Records that this version writes in another form, which the previous version reads like its own. */
const rewritten: Partial<Record<keyof typeof records, string>> = {
  "withdrawn at a time that is not known":
    "{rds1 c=9f86d081 n=ca978112ca1b k=ext4/w p=00000000 b=1 e=7-0a1b2c3d w=- x=7fd6407f}",
};

for (const [name, comment] of Object.entries(records)) {
  Deno.test(`the record of a volume is written and read as before: ${name}`, () => {
    const text = previous.records[name as keyof typeof records];
    assert.equal(formatComment(comment), rewritten[name as keyof typeof records] ?? text);
    assert.deepEqual(parseComment(text), { state: "record", comment });
  });
}

for (const [name, stagingState] of Object.entries(stagingStates)) {
  Deno.test(`the state of a node is written and read as before: ${name}`, () => {
    const text = previous.stagingStates[name as keyof typeof stagingStates];
    assert.equal(formatStagingState(stagingState), text);
    assert.deepEqual(parseStagingState(text, stagingState.volumeId, "/state"), stagingState);
  });
}

Deno.test("a volume that the previous version staged has no device layer, and reading its state adds none", () => {
  for (const [name, { volumeId }] of Object.entries(stagingStates)) {
    const text = previous.stagingStates[name as keyof typeof stagingStates];
    assert.equal("layer" in parseStagingState(text, volumeId, "/state"), false, name);
  }
});

for (const [name, { comment, nodeId, capability, readOnly = false, exportNqn }] of Object.entries(uses)) {
  Deno.test(`a publish context is written and read as before: ${name}`, async () => {
    const context = previous.publishContexts[name as keyof typeof uses];
    const { deps, store } = testController();
    store.put(aDisk(records[comment].record, exportNqn === undefined ? {} : { exportNqn }));
    const request = aPublish(nodeId, { capability, readOnly });
    const written = await publishVolume(deps, "pvc-1", request, testParameters, testContext());
    assert.deepEqual(written, { ...context, ...added });
    assert.deepEqual(store.calls.map(({ method }) => method), ["view"]);
    assert.deepEqual(parsePublishContext(context, "pvc-1"), {
      nqn: context.nqn,
      epoch: context.epoch,
      addresses: [context.nvmeAddress],
      port: Number(context.nvmePort),
      sizeBytes: BigInt(context.size),
      readOnly: context.readonly === "true",
      mayFormat: context.mayFormat === "true",
      imported: true,
      mayReplay: false,
      machine: machineOf(context),
      needsLayer: false,
      encrypted: false,
    });
  });
}

/** What this version adds, which the previous one does not read. */
const added = { imported: "false" };
const previousComment = previous.records["published for the first time"];

Deno.test("a volume that the previous version published is not changed, and records its machine from the next epoch on", async () => {
  const { deps, store, clock } = testController();
  const machine = "0a0b0c0d";
  const nodes = { ...deps.nodes, machineOf: () => Promise.resolve(machine) };
  store.put({ ...aDisk(records["published for the first time"].record), comment: previousComment });
  const context = testContext();
  const publish = () =>
    publishVolume({ ...deps, nodes }, "pvc-1", aPublish("node-1"), testParameters, context);
  assert.deepEqual(await publish(), {
    ...previous.publishContexts["a file system that may be made"],
    ...added,
  });
  assert.equal(store.disks.get("pvc-1")!.comment, previousComment, "its connections stay what they are");
  await unpublishVolume(deps, "pvc-1", "node-1", context);
  assert.equal(store.disks.get("pvc-1")!.exported, false, "and can be fenced");
  const next = await inTime(clock, publish());
  assert.equal(next["machine"], machine);
  assert.equal(parsePublishContext(next, "pvc-1").machine, machine);
});
