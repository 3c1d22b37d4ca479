import type { Environment } from "../config/config.ts";
import type { ControllerConfig } from "../config/router_settings.ts";
import { readClusterAddress } from "../config/cluster.ts";
import { objectFlags, routerFlags } from "../config/flag_tables.ts";
import { type ConfigFiles, noFiles, readChosenBackends } from "../config/backends.ts";
import { type FlagTable, type FlagValues, readFlags } from "../flags.ts";
import type { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import type { ControllerRun } from "../controller_command.ts";

/** Flags of `rds-csi audit`. */
export const auditCommandFlags: FlagTable = {
  "json": { form: "switch", help: "Print one JSON object." },
  "foreign": {
    form: "switch",
    help:
      "Also list what is, or may be, others': disks without a record, of other clusters and of the legacy driver, and its images.",
  },
  "delete": {
    form: "list",
    help: "Delete the findings of that volume or snapshot, or at that path, if nothing protects them.",
  },
  "delete-older-than": {
    form: "duration",
    aliases: ["older-than"],
    least: 3_600_000,
    help:
      "Delete findings that are at least this old by their record (minimum 1h); findings without a known age stay.",
  },
  "vouch": {
    form: "switch",
    help:
      "Without a cluster to ask: you vouch that no PersistentVolume needs what --delete names. Data can be lost.",
  },
};

/** Every flag of `rds-csi audit` except those of the router. */
export const auditFlags: FlagTable = { ...auditCommandFlags, ...objectFlags };

/** The options of `rds-csi audit`. */
export interface AuditCommandOptions {
  /** The routers to audit, one after the other. */
  readonly configs: readonly ControllerConfig[];
  /** The cluster whose use is compared; undefined when there is none. */
  readonly cluster: ControllerRun["cluster"];
  readonly json: boolean;
  readonly foreign: boolean;
  /** Ids and paths to delete. */
  readonly chosen: readonly string[];
  /** In milliseconds; undefined deletes nothing by age. */
  readonly deleteOlderThanMs: number | undefined;
  readonly vouched: boolean;
}

/**
 * Reads the command line of `rds-csi audit`.
 *
 * @throws {FlagError} naming all problems at once
 */
export function readAuditOptions(
  args: readonly string[],
  env: Environment,
  files: ConfigFiles = noFiles,
): AuditCommandOptions {
  const flags = readFlags({ ...auditFlags, ...routerFlags }, args, env);
  const address = readClusterAddress(flags, env);
  const byAge = flags.isGiven("delete-older-than");
  const configs = readChosenBackends(flags, { ...files, hasCluster: address !== undefined });
  const options = {
    configs,
    cluster: address && { address, driverName: flags.text("driver-name") },
    json: flags.switch("json"),
    foreign: flags.switch("foreign"),
    chosen: flags.list("delete"),
    deleteOlderThanMs: byAge ? flags.durationMs("delete-older-than") : undefined,
    vouched: flags.switch("vouch"),
  };
  if (flags.text("config") !== "") assertEachHasRouter(flags, configs);
  flags.assertNoProblems();
  return options;
}

/** A path does not name its router. */
function assertEachHasRouter(flags: FlagValues, configs: readonly ControllerConfig[]): void {
  for (const wanted of flags.list("delete")) {
    const isOne = configs.length === 1 && wanted.startsWith("/");
    if (isOne || configs.some(({ ids }) => idOn(ids, wanted) !== undefined)) continue;
    flags.problem(
      "delete",
      wanted,
      "an id of one of the routers, with its prefix; with --backend also a path there",
    );
  }
}

/** An id to delete, in one router's own form; undefined when it belongs to another router. */
export function idOn(ids: VolumeIdPrefix, wanted: string): string | undefined {
  return wanted.startsWith("/") ? undefined : ids.strip(wanted);
}
