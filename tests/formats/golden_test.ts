// The texts that outlive a process: records on the router, the state of a node, and publish contexts. `golden.json` has them as
// they are in the first format. Until the first release they change with the format; after it they may only be added to,
// because a changed text strands the volumes of a cluster that rolls back.
import assert from "node:assert/strict";
import { publishVolume } from "../../src/controller/attachments/publish.ts";
import { unpublishVolume } from "../../src/controller/attachments/unpublish.ts";
import type { Capability } from "../../src/volume/model/capabilities.ts";
import { decodeHandle } from "../../src/volume/model/ids/handles.ts";
import { legacyEpoch } from "../../src/volume/model/epoch.ts";
import {
  formatComment,
  nodeDigest,
  parseComment,
  type RecordComment,
} from "../../src/volume/model/record.ts";
import { parsePublishContext } from "../../src/volume/model/parse_context.ts";
import { importedSource } from "../../src/volume/model/sources.ts";
import {
  formatKnown,
  formatStagingState,
  parseKnown,
  parseStagingState,
} from "../../src/volume/model/staging/state_file.ts";
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
import { writtenByNodes } from "./node_lives.ts";
import golden from "./golden.json" with { type: "json" };

const epoch = { counter: 7, nonce: "0a1b2c3d" };

function bare(record: Parameters<typeof aRecord>[0]): RecordComment {
  return { record: aRecord(record), before: "", after: "" };
}

const records: Readonly<Record<keyof typeof golden.records, RecordComment>> = {
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
  "with a device layer": bare({ epoch, blankEpoch: 0, holders: [aHolder("node-1")], layered: true }),
  "encrypted": bare({ epoch, capabilities: "ext4/ew", holders: [aHolder("node-1")] }),
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

function valueOf(context: object, key: string): string | undefined {
  return (context as Readonly<Record<string, string>>)[key];
}

/** How a node holds the volume of each publish context. The volume has been published to that node before. */
const uses: Readonly<
  Record<keyof typeof golden.publishContexts, {
    readonly comment: keyof typeof records;
    readonly nodeId: string;
    readonly capability: Capability;
    readonly readOnly?: boolean;
    readonly exportNqn?: string;
    readonly needsLayer?: boolean;
    readonly encrypted?: boolean;
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
  "the first reader of a file system": {
    comment: "read by several",
    nodeId: "a",
    capability: { access: "mount", filesystem: "xfs", mode: "multi-node-reader-only" },
    readOnly: true,
  },
  "what the legacy driver exported": {
    comment: "of the legacy driver",
    nodeId: "node-1",
    capability: writer,
    exportNqn: `${testPrefix}:pvc-1`,
  },
  "below a device layer": {
    comment: "with a device layer",
    nodeId: "node-1",
    capability: writer,
    needsLayer: true,
  },
  "an encrypted file system": {
    comment: "encrypted",
    nodeId: "node-1",
    capability: writer,
    encrypted: true,
  },
};

for (const [name, comment] of Object.entries(records)) {
  Deno.test(`the record of a volume has its golden text: ${name}`, () => {
    const text = golden.records[name as keyof typeof records];
    assert.equal(formatComment(comment), text);
    assert.deepEqual(parseComment(text), { state: "record", comment });
  });
}

Deno.test("a node writes the golden files in the course of a volume's life, and reads them back", async () => {
  const written = await writtenByNodes();
  const texts = written.map(({ moment, path, text }) => [`${moment} -> ${path}`, text]);
  assert.deepEqual(texts, Object.entries(golden.nodeFiles));
  for (const { path, text } of written) {
    const id = decodeHandle(path.replace(/^.*\/|\.json$/g, ""));
    const again = path.startsWith("/state/known/")
      ? formatKnown(parseKnown(text, id, path))
      : formatStagingState(parseStagingState(text, id, path));
    assert.deepEqual(JSON.parse(again), JSON.parse(text));
  }
});

for (const [name, use] of Object.entries(uses)) {
  Deno.test(`a publish context has its golden text: ${name}`, async () => {
    const { comment, nodeId, capability, exportNqn, ...above } = use;
    const { readOnly = false, needsLayer = false, encrypted = false } = above;
    const context = golden.publishContexts[name as keyof typeof uses];
    const { deps, store } = testController();
    store.put(aDisk(records[comment].record, exportNqn === undefined ? {} : { exportNqn }));
    const request = aPublish(nodeId, { capability, readOnly, needsLayer, encrypted });
    const written = await publishVolume(deps, "pvc-1", request, testParameters, testContext());
    assert.deepEqual(written, context);
    assert.deepEqual(store.calls.map(({ method }) => method), ["view"]);
    assert.deepEqual(parsePublishContext(context, "pvc-1"), {
      nqn: context.nqn,
      epoch: context.epoch,
      addresses: [context.nvmeAddress],
      port: Number(context.nvmePort),
      sizeBytes: BigInt(context.size),
      readOnly: context.readonly === "true",
      mayFormat: context.mayFormat === "true",
      imported: false,
      claim: undefined,
      mayReplay: valueOf(context, "mayReplay") === "true",
      machine: valueOf(context, "machine"),
      needsLayer,
      encrypted,
    });
  });
}

const publishedComment = golden.records["published for the first time"];

Deno.test("a volume that was published without a machine is not changed, and records its machine from the next epoch on", async () => {
  const { deps, store, clock } = testController();
  const machine = "0a0b0c0d";
  const nodes = { ...deps.nodes, machineOf: () => Promise.resolve(machine) };
  store.put({ ...aDisk(records["published for the first time"].record), comment: publishedComment });
  const context = testContext();
  const publish = () =>
    publishVolume({ ...deps, nodes }, "pvc-1", aPublish("node-1"), testParameters, context);
  assert.deepEqual(await publish(), golden.publishContexts["a file system that may be made"]);
  assert.equal(store.disks.get("pvc-1")!.comment, publishedComment, "its connections stay what they are");
  await unpublishVolume(deps, "pvc-1", "node-1", context);
  assert.equal(store.disks.get("pvc-1")!.exported, false, "and can be fenced");
  const next = await inTime(clock, publish());
  assert.equal(next["machine"], machine);
  assert.equal(parsePublishContext(next, "pvc-1").machine, machine);
});
