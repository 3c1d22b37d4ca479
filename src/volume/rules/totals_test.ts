import assert from "node:assert/strict";
import {
  aDisk,
  aHolder,
  aPool,
  aRecord,
  aSnapshotId,
  plainImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { availableBytes } from "./capacity.ts";
import { elsewhere } from "../model/totals.ts";
import { totalsOf, type WholeInventory } from "./totals.ts";
import { formatSnapshotName } from "../model/snapshots/snapshots.ts";

const gibibyte = 1n << 30n;
const pool = aPool({ freeBytes: 90n * gibibyte });
const epoch = { counter: 1, nonce: "0a0b0c0d" };
const shared = (nodeId: string) => aHolder(nodeId, { mode: "multi-node-multi-writer" });
const reader = (nodeId: string) => aHolder(nodeId, { mode: "multi-node-reader-only", readOnly: true });
const snapshot = formatSnapshotName({
  id: aSnapshotId("s"),
  source: "pvc-1",
  createdAtSeconds: 1,
  blank: false,
  encrypted: false,
  cluster: testCluster,
});

const reading: WholeInventory = {
  pools: [pool],
  upMs: Infinity,
  volumes: [
    aDisk(aRecord({ epoch, holders: [aHolder("a")] }), { id: "pvc-1" }),
    aDisk(aRecord({ epoch, holders: [shared("a"), shared("b")] }), { id: "pvc-2" }),
    aDisk(aRecord({ epoch, holders: [reader("a"), reader("b")] }), { id: "pvc-3" }),
    aDisk(aRecord(), { id: "pvc-4", imagePath: plainImage("pvc-4", `${testBase}/inner`) }),
    aDisk(aRecord({ epoch, holders: [aHolder("a")] }), {
      id: "pvc-5",
      imagePath: plainImage("pvc-5", "/old"),
    }),
    aDisk(aRecord({ cluster: "ffffffff" }), { id: "pvc-6" }),
    aDisk(aRecord(), { id: "pvc-7", comment: "{rds1 }" }),
    aDisk(aRecord(), { id: "somebodys", imagePath: "/pool/else.img", comment: "" }),
  ],
};

Deno.test("totalsOf() counts this cluster's volumes, holders and migrations by folder, and the space of every owner's disks", () => {
  const { folders, withSnapshots } = totalsOf(reading, testCluster, [testBase, `${testBase}/inner`]);
  assert.equal(withSnapshots, false);
  const totals = {
    sizeBytes: pool.sizeBytes,
    freeBytes: pool.freeBytes,
    diskBytes: 7n * gibibyte,
    snapshotBytes: undefined,
  };
  const here = { poolName: "pool", pool: totals };
  assert.deepEqual(folders, [
    { basePath: testBase, ...here, volumes: 3, attachments: 5, migrations: 1 },
    { basePath: `${testBase}/inner`, ...here, volumes: 1, attachments: 0, migrations: 0 },
    { basePath: elsewhere, poolName: "", pool: undefined, volumes: 1, attachments: 1, migrations: 0 },
  ]);
});

Deno.test("totalsOf() names the volume, of any owner, that has the label of a pool", () => {
  const taken = { ...reading, pools: [{ ...pool, labelTakenBy: "pvc-6" }] };
  const [folder] = totalsOf(taken, testCluster, [testBase]).folders;
  assert.equal(folder?.pool?.labelTakenBy, "pvc-6");
});

Deno.test("totalsOf() promises exactly what is no longer available", () => {
  const files = [{ path: `${testBase}/${snapshot}/disk.img`, sizeBytes: 5n * gibibyte, directory: false }];
  const { folders, withSnapshots } = totalsOf({ ...reading, files }, testCluster, [testBase]);
  assert.equal(withSnapshots, true);
  const { diskBytes, snapshotBytes } = folders[0]!.pool!;
  assert.deepEqual([diskBytes, snapshotBytes], [7n * gibibyte, 5n * gibibyte]);
  const available = availableBytes(pool, { volumes: reading.volumes, files }, 1);
  assert.equal(diskBytes + snapshotBytes!, pool.sizeBytes - available);
});

Deno.test("totalsOf() names this cluster's volumes, with their holders, and no complete name of an export", () => {
  const { volumes } = totalsOf(reading, testCluster, [testBase]);
  assert.deepEqual(
    volumes.map(({ id, basePath, holders, migrating, epoch }) => [
      id,
      basePath,
      holders.map(({ nodeId }) => nodeId).join(),
      migrating,
      epoch,
    ]),
    [
      ["pvc-1", testBase, "a", false, 1],
      ["pvc-2", testBase, "a,b", true, 1],
      ["pvc-3", testBase, "a,b", false, 1],
      ["pvc-4", elsewhere, "", false, 0],
      ["pvc-5", elsewhere, "a", false, 1],
    ],
  );
  const shown = JSON.stringify({ ...volumes[0], sizeBytes: String(volumes[0]!.sizeBytes) });
  assert.ok(!shown.includes(epoch.nonce), shown);
});
