import type { ControllerEvent, ControllerEvents } from "../volume/ports/controller_events.ts";
import { type AuditKind, auditKinds } from "../volume/model/audit_kinds.ts";
import { elsewhere, type FolderTotals, type PoolTotals, type Totals } from "../volume/model/totals.ts";
import type { ClaimLookup } from "./status/model.ts";
import type { Labels, Meter, MetricRegistry, MetricTable } from "./metrics.ts";

/** The metrics of a controller's work. */
export const controllerMetrics = {
  rds_csi_unfenced_detaches_total: {
    type: "counter",
    help: "Nodes that left a volume which other nodes still use, and that the router could not shut out.",
    labels: ["backend"],
  },
  rds_csi_fenced_nodes_total: {
    type: "counter",
    help: "Nodes that the driver cut off from a volume without a request.",
    labels: ["backend"],
  },
  rds_csi_attach_refusals_total: {
    type: "counter",
    help: "Attachments refused for a reason that stays until a person acts.",
    labels: ["backend"],
  },
  rds_csi_overdue_migrations_total: {
    type: "counter",
    help: "Checks that found two nodes sharing a volume for longer than a migration may take.",
    labels: ["backend"],
  },
  rds_csi_exports_restored_total: {
    type: "counter",
    help:
      "Exports of volumes in use restored, because they were off or under another name than their nodes know.",
    labels: ["backend"],
  },
  rds_csi_unwanted_exports_total: {
    type: "counter",
    help: "Checks that found an export which no VolumeAttachment wants, by whether it was withdrawn.",
    labels: ["backend", "withdrawn"],
  },
  rds_csi_orphans: {
    type: "gauge",
    help:
      "Findings of the last audit without an owner, or with a part missing, by kind: see `rds-csi audit`.",
    labels: ["backend", "kind"],
  },
  rds_csi_last_audit_timestamp_seconds: {
    type: "gauge",
    help: "Time of the last audit; 0 before the first one, and where another controller leads.",
    labels: ["backend"],
  },
  rds_csi_inventory_timestamp_seconds: {
    type: "gauge",
    help:
      "Time of the reading behind the totals of pools and volumes, by what was read: disks or snapshots; 0 before the first one.",
    labels: ["backend", "of"],
  },
  rds_csi_pool_mounted: {
    type: "gauge",
    help:
      "Whether the pool of a base path is mounted; while it is not, its other metrics are absent. `volume_id` " +
      "and `claim` are there only while a volume has the pool's label, and name it.",
    labels: ["backend", "base_path", "pool", "volume_id", "claim"],
  },
  rds_csi_pool_size_bytes: {
    type: "gauge",
    help: "Size of the pool of a base path.",
    labels: ["backend", "base_path", "pool"],
  },
  rds_csi_pool_free_bytes: {
    type: "gauge",
    help: "Free space on the pool of a base path.",
    labels: ["backend", "base_path", "pool"],
  },
  rds_csi_pool_promised_bytes: {
    type: "gauge",
    help:
      "Space promised on the pool of a base path to disks of any owner and to snapshots; new volumes are made " +
      "while both stay within its size times --overcommit.",
    labels: ["backend", "base_path", "pool", "to"],
  },
  rds_csi_volumes: {
    type: "gauge",
    help:
      "This cluster's volumes by base path; `elsewhere` counts those in a folder that no --base-path names.",
    labels: ["backend", "base_path"],
  },
  rds_csi_attachments: {
    type: "gauge",
    help: "Pairs of a node and a volume of this cluster that it holds, by base path.",
    labels: ["backend", "base_path"],
  },
  rds_csi_migrations: {
    type: "gauge",
    help: "This cluster's volumes that two nodes share for a migration, by base path.",
    labels: ["backend", "base_path"],
  },
} as const satisfies MetricTable;

/** Counts the events of one router's controller. */
export class ControllerMetrics implements ControllerEvents {
  readonly #meter: Meter<typeof controllerMetrics>;

  readonly #nowMs: () => number;
  readonly #claimOf: ClaimLookup;
  /** By base path, the labels with which its pool is shown. */
  readonly #shownPools = new Map<string, Labels>();

  /**
   * @param nowMs the time, in milliseconds since the Unix epoch
   * @param backend name of the router
   */
  constructor(
    registry: MetricRegistry,
    nowMs: () => number,
    backend: string,
    claimOf: ClaimLookup = () => undefined,
  ) {
    this.#meter = registry.declare(controllerMetrics, { backend });
    this.#nowMs = nowMs;
    this.#claimOf = claimOf;
    for (const subject of ["disks", "snapshots"]) {
      this.#meter.set("rds_csi_inventory_timestamp_seconds", 0, { of: subject });
    }
  }

  occurred(event: ControllerEvent): void {
    switch (event.kind) {
      case "leaver-unfenced":
        return this.#meter.add("rds_csi_unfenced_detaches_total");
      case "fenced":
        return this.#meter.add("rds_csi_fenced_nodes_total", {}, event.nodeIds.length);
      case "attach-refused":
        return this.#meter.add("rds_csi_attach_refusals_total");
      case "migration-overdue":
        return this.#meter.add("rds_csi_overdue_migrations_total");
      case "export-restored":
        return this.#meter.add("rds_csi_exports_restored_total");
      case "export-unwanted":
        return this.#meter.add("rds_csi_unwanted_exports_total", { withdrawn: String(event.withdrawn) });
      case "audited":
        return this.#showAudit(event.counts);
      case "inventory-read":
        return this.#showInventory(event.totals, event.atMs);
      case "out-of-space":
      case "health":
      case "older-epoch":
      case "node-without-driver":
      case "hardware-read":
        // Counted as answers of calls, recorded as events, or both; the last one elsewhere.
        return;
    }
  }

  #showAudit(counts: ReadonlyMap<AuditKind, number> | undefined): void {
    for (const kind of Object.keys(auditKinds) as AuditKind[]) {
      if (counts === undefined) this.#meter.drop("rds_csi_orphans", { kind });
      else this.#meter.set("rds_csi_orphans", counts.get(kind) ?? 0, { kind });
    }
    const atMs = counts === undefined ? 0 : this.#nowMs();
    this.#meter.set("rds_csi_last_audit_timestamp_seconds", atMs / 1000);
  }

  #showInventory({ folders, withSnapshots }: Totals, atMs: number): void {
    for (const folder of folders) this.#showFolder(folder);
    for (const subject of withSnapshots ? ["disks", "snapshots"] : ["disks"]) {
      this.#meter.set("rds_csi_inventory_timestamp_seconds", atMs / 1000, { of: subject });
    }
  }

  /** Values that are unknown while a pool is not mounted are removed: the last one would look current. */
  #showFolder({ basePath, poolName, pool, volumes, attachments, migrations }: FolderTotals): void {
    const folder = { base_path: basePath };
    const where = { ...folder, pool: poolName };
    const set = (name: GaugeOfFolder, value: number | bigint | undefined, labels: Labels) =>
      value === undefined ? this.#meter.drop(name, labels) : this.#meter.set(name, Number(value), labels);
    const known = basePath === elsewhere || pool !== undefined;
    if (basePath !== elsewhere) {
      this.#showMounted(where, pool);
      set("rds_csi_pool_size_bytes", pool?.sizeBytes, where);
      set("rds_csi_pool_free_bytes", pool?.freeBytes, where);
      set("rds_csi_pool_promised_bytes", pool?.diskBytes, { ...where, to: "disks" });
    }
    set("rds_csi_volumes", known ? volumes : undefined, folder);
    set("rds_csi_attachments", known ? attachments : undefined, folder);
    set("rds_csi_migrations", known ? migrations : undefined, folder);
    // A read of disks alone keeps the earlier values of snapshots.
    if (pool?.snapshotBytes !== undefined || !known) {
      set("rds_csi_pool_promised_bytes", pool?.snapshotBytes, { ...where, to: "snapshots" });
    }
  }

  /** One series for each base path: the name of a volume, whose label may be changed at any time, replaces the last one. */
  #showMounted(where: Labels & { readonly base_path: string }, pool: PoolTotals | undefined): void {
    const volumeId = pool?.labelTakenBy ?? "";
    const claim = volumeId === "" ? "" : this.#claimOf(volumeId) ?? "";
    const labels = { ...where, volume_id: volumeId, claim };
    this.#meter.drop("rds_csi_pool_mounted", this.#shownPools.get(where.base_path) ?? labels);
    this.#shownPools.set(where.base_path, labels);
    this.#meter.set("rds_csi_pool_mounted", pool === undefined ? 0 : 1, labels);
  }
}

type GaugeOfFolder =
  | "rds_csi_pool_size_bytes"
  | "rds_csi_pool_free_bytes"
  | "rds_csi_pool_promised_bytes"
  | "rds_csi_volumes"
  | "rds_csi_attachments"
  | "rds_csi_migrations";

/** The metrics of a controller in an election. */
export const leaderMetrics = {
  rds_csi_leader: {
    type: "gauge",
    help: "Whether this controller leads.",
    labels: [],
  },
} as const satisfies MetricTable;

/** Declares the metric; the returned function shows whether this controller leads. */
export function showsLeader(registry: MetricRegistry): (isLeading: boolean) => void {
  const meter = registry.declare(leaderMetrics);
  const show = (isLeading: boolean) => meter.set("rds_csi_leader", isLeading ? 1 : 0);
  show(false);
  return show;
}
