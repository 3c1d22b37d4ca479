import assert from "node:assert/strict";
import { withoutBackend } from "../../tests/support/backend_label.ts";
import type { FolderTotals } from "../volume/model/totals.ts";
import { ControllerMetrics } from "./controller_metrics.ts";
import { MetricRegistry } from "./metrics.ts";

const pool = { sizeBytes: 100n, freeBytes: 70n, diskBytes: 40n, snapshotBytes: 5n };
const folder: FolderTotals = {
  basePath: "/pool/csi",
  poolName: "pool",
  pool,
  volumes: 3,
  attachments: 2,
  migrations: 1,
};

function counting() {
  const registry = new MetricRegistry();
  const metrics = new ControllerMetrics(registry, () => 0, "default");
  /** Every series of pools and volumes, by name and labels. */
  const shown = () =>
    Object.fromEntries(
      withoutBackend(registry.expose()).split("\n")
        .filter((line) => /^rds_csi_(?:pool|volumes|attachments|migrations|inventory)/.test(line))
        .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
    );
  return { metrics, shown };
}

const at = '{base_path="/pool/csi",pool="pool"}';
const promised = (to: string) => `rds_csi_pool_promised_bytes{base_path="/pool/csi",pool="pool",to="${to}"}`;
const seenAt = (of: string) => `rds_csi_inventory_timestamp_seconds{of="${of}"}`;

Deno.test("ControllerMetrics shows the totals of a read, and its time", () => {
  const { metrics, shown } = counting();
  assert.deepEqual(shown(), { [seenAt("disks")]: 0, [seenAt("snapshots")]: 0 });
  metrics.occurred({
    kind: "inventory-read",
    totals: { folders: [folder], volumes: [], withSnapshots: true },
    atMs: 1000,
  });
  assert.deepEqual(shown(), {
    [seenAt("disks")]: 1,
    [seenAt("snapshots")]: 1,
    [`rds_csi_pool_mounted${at}`]: 1,
    [`rds_csi_pool_size_bytes${at}`]: 100,
    [`rds_csi_pool_free_bytes${at}`]: 70,
    [promised("disks")]: 40,
    [promised("snapshots")]: 5,
    'rds_csi_volumes{base_path="/pool/csi"}': 3,
    'rds_csi_attachments{base_path="/pool/csi"}': 2,
    'rds_csi_migrations{base_path="/pool/csi"}': 1,
  });
});

Deno.test("ControllerMetrics keeps the values of snapshots, with their time, when only disks are read", () => {
  const { metrics, shown } = counting();
  metrics.occurred({
    kind: "inventory-read",
    totals: { folders: [folder], volumes: [], withSnapshots: true },
    atMs: 1000,
  });
  const later = { ...folder, pool: { ...pool, diskBytes: 41n, snapshotBytes: undefined } };
  metrics.occurred({
    kind: "inventory-read",
    totals: { folders: [later], volumes: [], withSnapshots: false },
    atMs: 10_000,
  });
  const series = shown();
  assert.deepEqual([series[promised("disks")], series[promised("snapshots")]], [41, 5]);
  assert.deepEqual([series[seenAt("disks")], series[seenAt("snapshots")]], [10, 1]);
});

Deno.test("ControllerMetrics shows of a pool that is not mounted only that", () => {
  const { metrics, shown } = counting();
  metrics.occurred({
    kind: "inventory-read",
    totals: { folders: [folder], volumes: [], withSnapshots: true },
    atMs: 1000,
  });
  metrics.occurred({
    kind: "inventory-read",
    totals: { folders: [{ ...folder, pool: undefined }], volumes: [], withSnapshots: false },
    atMs: 1000,
  });
  assert.deepEqual(shown(), {
    [seenAt("disks")]: 1,
    [seenAt("snapshots")]: 1,
    [`rds_csi_pool_mounted${at}`]: 0,
  });
});

Deno.test("ControllerMetrics names the volume that has the label of a pool, and its claim, while it has it", () => {
  const registry = new MetricRegistry();
  const claims = new Map([["nas2/pvc-7", "apps/data"]]);
  const metrics = new ControllerMetrics(registry, () => 0, "nas2", (handle) => claims.get(handle));
  const shown = (pool: FolderTotals["pool"]) => {
    const totals = { folders: [{ ...folder, pool }], volumes: [], withSnapshots: false };
    metrics.occurred({ kind: "inventory-read", totals, atMs: 1000 });
    return registry.expose().split("\n").filter((line) => line.startsWith("rds_csi_pool_mounted{"));
  };
  const series = (labels: string, mounted = 1) => [
    `rds_csi_pool_mounted{backend="nas2",base_path="/pool/csi",pool="pool"${labels}} ${mounted}`,
  ];
  assert.deepEqual(shown(pool), series(""));
  const named = series(',volume_id="nas2/pvc-7",claim="apps/data"');
  assert.deepEqual(shown({ ...pool, labelTakenBy: "nas2/pvc-7" }), named);
  assert.deepEqual(shown({ ...pool, labelTakenBy: "nas2/pvc-7" }), named);
  assert.deepEqual(shown({ ...pool, labelTakenBy: "nas2/other" }), series(',volume_id="nas2/other"'));
  assert.deepEqual(shown({ ...pool, labelTakenBy: "x\u001b[2J" }), series(',volume_id="x\\\\u001b[2J"'));
  assert.deepEqual(shown(undefined), series("", 0));
  assert.deepEqual(shown(pool), series(""));
});

Deno.test("the findings of the last audit are shown until another controller makes the audits", () => {
  const registry = new MetricRegistry();
  const metrics = new ControllerMetrics(registry, () => 5_000, "default");
  const shown = () =>
    withoutBackend(registry.expose()).split("\n").filter((line) =>
      /^rds_csi_(?:orphans|last_audit)/.test(line)
    );
  const never = ["rds_csi_last_audit_timestamp_seconds 0"];
  assert.deepEqual(shown(), never);
  metrics.occurred({ kind: "audited", counts: new Map([["no-record", 2]]) });
  assert.ok(shown().includes('rds_csi_orphans{kind="no-record"} 2'));
  assert.ok(shown().includes('rds_csi_orphans{kind="earlier-image"} 0'));
  assert.ok(shown().includes("rds_csi_last_audit_timestamp_seconds 5"));
  metrics.occurred({ kind: "audited", counts: undefined });
  assert.deepEqual(shown(), never);
});

Deno.test("two routers count separately, and metrics without other labels appear at zero for each", () => {
  const registry = new MetricRegistry();
  const [one, two] = ["nas1", "nas2"].map((name) => new ControllerMetrics(registry, () => 0, name));
  one!.occurred({ kind: "attach-refused", volumeId: "v", nodeId: "n", message: "" });
  two!.occurred({
    kind: "inventory-read",
    totals: { folders: [folder], volumes: [], withSnapshots: false },
    atMs: 0,
  });
  const lines = registry.expose().split("\n");
  for (
    const line of [
      'rds_csi_attach_refusals_total{backend="nas1"} 1',
      'rds_csi_attach_refusals_total{backend="nas2"} 0',
      'rds_csi_volumes{backend="nas2",base_path="/pool/csi"} 3',
    ]
  ) assert.ok(lines.includes(line), line);
  assert.ok(!lines.some((line) => line.startsWith('rds_csi_volumes{backend="nas1"')));
});
