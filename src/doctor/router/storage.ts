import { type Fragment, ros } from "../../routeros/console/command.ts";
import { parseRows, type Row } from "../../routeros/console/json.ts";
import type { CheckSettings, RouterCheck } from "./check.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import { isVolumeId, parentFolder, poolOf } from "../../volume/model/ids.ts";
import type { StoredFile, StoredVolume } from "../../volume/model/inventory.ts";
import { judgeLabels, labelsQuery, parseLabels } from "./labels.ts";
import { fileName, namedFilesQuery } from "../../routeros/store/queries.ts";
import { parseFiles } from "../../routeros/store/rows.ts";
import { isLegacySnapshot, legacySnapshotsPage } from "../../volume/model/legacy_snapshots.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { Reach } from "../../host/network.ts";

const poolName = "pool";
/** Share of a pool below which its free space is worth a word. */
const scarceShare = 20n;

/** A disk that is not file-backed, as far as a pool on it goes. */
export interface PoolDisk {
  readonly slot: string;
  /** "" when there is none that the router knows. */
  readonly filesystem: string;
  readonly label: string;
  readonly mounted: boolean;
  /** Without slashes; "" when it is not mounted. */
  readonly mountPoint: string;
  /** "" when the router does not say. */
  readonly state: string;
  readonly sizeBytes: bigint;
  readonly freeBytes: bigint;
}

/** Whether the pools are mounted and well. */
export const poolsCheck: RouterCheck = {
  name: poolName,
  essential: true,
  async run(router) {
    const pools = judgePools(parsePoolDisks(await router.read(poolName, poolDisksQuery)));
    const labelled = parseLabels(await router.read(poolName, labelsQuery));
    const volumes = new Set((await router.inventory()).volumes.map(({ id }) => id));
    return [...pools, ...judgeLabels(labelled, volumes)];
  },
};

/** The disks on which pools can be. */
export const poolDisksQuery: Fragment =
  ros`/disk print detail as-value proplist=slot,fs,fs-label,mounted,mount-point,state,size,free where type!=${"file"}`;

/**
 * Reads the frame of {@linkcode poolDisksQuery}.
 *
 * @throws {VolumeError} unavailable when a disk cannot be read
 */
export function parsePoolDisks(frame: string): PoolDisk[] {
  return parseRows(frame, "list of pools").map((row) => ({
    slot: row.text("slot"),
    filesystem: row.text("fs", "").replace(/^-$/, ""),
    label: row.text("fs-label", ""),
    mounted: row.flag("mounted", false),
    mountPoint: row.text("mount-point", "").replace(/^\/+|\/+$/g, ""),
    state: row.text("state", ""),
    sizeBytes: bytesOf(row, "size"),
    freeBytes: bytesOf(row, "free"),
  }));
}

/** One finding a pool: mounted ones, and disks with a file system that is not mounted. */
export function judgePools(disks: readonly PoolDisk[]): Finding[] {
  const mounted = disks.filter((disk) => disk.mounted && disk.mountPoint !== "");
  const unmounted = disks.filter((disk) => !disk.mounted && disk.filesystem !== "");
  const findings = [...mounted.map(judgeMounted), ...unmounted.map(judgeUnmounted)];
  if (mounted.length > 0) return findings;
  return [
    ...findings,
    problem(poolName, "no pool is mounted, so that volumes have no place", "/disk/print detail"),
  ];
}

function judgeMounted(disk: PoolDisk): Finding {
  const { mountPoint, filesystem, label, state, sizeBytes, freeBytes } = disk;
  const text = [filesystem, label === "" ? "no label" : `label ${label}`, ...(state === "" ? [] : [state])];
  const found = `/${mountPoint}: ${text.join(", ")}, ${formatBytes(freeBytes)} of ${
    formatBytes(sizeBytes)
  } free`;
  if (state !== "" && state !== "clean") {
    return problem(
      poolName,
      `${found}; its state is not clean`,
      `/disk/print detail where slot="${disk.slot}"`,
    );
  }
  if (filesystem === "btrfs" && label === "") {
    return warning(poolName, `${found}; without a label its subvolumes cannot be named: no snapshots`);
  }
  if (freeBytes * scarceShare < sizeBytes) {
    return warning(poolName, `${found}; what was promised to volumes may not be there when it is written`);
  }
  return fine(poolName, found);
}

/** A file system that a router could mount, but does not; it may be meant so. */
function judgeUnmounted({ slot, filesystem, label }: PoolDisk): Finding {
  const name = label === "" ? filesystem : `${filesystem}, label ${label}`;
  return warning(
    poolName,
    `${slot} (${name}) is not mounted`,
    `/disk/set [find where slot="${slot}"] disabled=no mount-filesystem=yes`,
  );
}

function bytesOf(row: Row, key: string): bigint {
  return row.hasInteger(key) ? row.integer(key) : 0n;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** A size for people: `6.6 TiB`. */
export function formatBytes(bytes: bigint): string {
  let value = Number(bytes);
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

const basePathName = "base-path";

/** Whether volumes have a place in each folder that they may lie in. */
export const basePathsCheck: RouterCheck = {
  name: basePathName,
  essential: true,
  async run(router, { basePaths }) {
    const pools = parsePoolDisks(await router.read(basePathName, poolDisksQuery));
    const findings: Finding[] = [];
    for (const path of basePaths) {
      const paths = [path, parentFolder(path)];
      const files = parseFiles(
        await router.read(basePathName, namedFilesQuery(paths)),
        (file) => paths.includes(file),
      );
      findings.push(judgeBasePath(path, files, pools));
    }
    return findings;
  },
};

/** @param files what the router has at that path and at the folder above it */
export function judgeBasePath(
  path: string,
  files: readonly StoredFile[],
  pools: readonly PoolDisk[],
): Finding {
  const pool = pools.find((disk) => disk.mounted && disk.mountPoint === poolOf(path));
  if (pool === undefined) {
    const mounted = pools.filter((disk) => disk.mounted).map((disk) => `/${disk.mountPoint}`);
    return problem(
      basePathName,
      `${path} is on no mounted pool; mounted is ${mounted.join(", ") || "none"}`,
      mounted.length === 0 ? "/disk/print detail" : `--base-path ${mounted[0]}/metal-csi`,
    );
  }
  const entry = files.find((file) => file.path === path);
  if (entry === undefined) return judgeMissing(path, files);
  if (entry.directory) return fine(basePathName, `${path} is there, on the pool ${pool.slot}`);
  return problem(basePathName, `${path} is a file, not a folder`, `--base-path ${path}.d`);
}

/** The driver makes the last folder of a base path with the first volume; the one above it has to be there. */
function judgeMissing(path: string, files: readonly StoredFile[]): Finding {
  const parent = parentFolder(path);
  // The mount point of a pool is listed as a disk, on some routers not at all.
  const parentIsThere = parent === `/${poolOf(path)}` || files.some((file) => file.path === parent);
  if (path === `/${poolOf(path)}` || parentIsThere) {
    return fine(basePathName, `${path} is not there yet; the first volume makes it`);
  }
  return problem(
    basePathName,
    `${path} is not there, and only its last folder would be made`,
    `/file/add type=directory name="${fileName(parent)}"`,
  );
}

const disksName = "disks";
const maxNamed = 5;
/** Ids of this driver are no longer; those of the earlier one have 40 characters. */
const longestOwnId = 32;

/** Whose the disks are. */
export const disksCheck: RouterCheck = {
  name: disksName,
  essential: true,
  run: async (router, settings) => judgeDisks((await router.inventory()).volumes, settings),
};

/** The file-backed disks of a router, by what their comments say. */
export function judgeDisks(
  volumes: readonly StoredVolume[],
  { basePaths, cluster }: Pick<CheckSettings, "basePaths" | "cluster">,
): Finding[] {
  const kinds = Map.groupBy(volumes, (volume) => kindOf(volume, basePaths, cluster ?? ""));
  const listed = (kind: Kind) => kinds.get(kind) ?? [];
  const counts = [
    ...(cluster === undefined ? [] : [`${listed("own").length} of this cluster`]),
    `${listed("other").length} of ${cluster === undefined ? "some cluster" : "other clusters"}`,
    `${listed("earlier").length} of the legacy Go driver`,
    `${listed("foreign").length} of nobody in the base paths`,
  ];
  const findings = [
    cluster === undefined
      ? warning(disksName, `${counts.join(", ")}; which are this cluster's is not known`, "--cluster-id ID")
      : fine(disksName, counts.join(", ")),
  ];
  const damaged = listed("damaged");
  if (damaged.length > 0) findings.push(judgeDamaged(damaged));
  const snapshots = listed("earlier-snapshot");
  if (snapshots.length > 0) findings.push(judgeLegacySnapshots(snapshots));
  return findings;
}

type Kind = "own" | "other" | "damaged" | "earlier" | "earlier-snapshot" | "foreign" | "elsewhere";

function kindOf(volume: StoredVolume, basePaths: readonly string[], cluster: string): Kind {
  const { state } = judgeOwnership(volume, cluster);
  if (state === "owned") return "own";
  if (state === "other-cluster") return "other";
  if (state === "damaged") return "damaged";
  if (volume.id.length > longestOwnId && isVolumeId(volume.id)) return "earlier";
  if (isLegacySnapshot(volume, basePaths)) return "earlier-snapshot";
  return basePaths.some((path) => volume.imagePath.startsWith(`${path}/`)) ? "foreign" : "elsewhere";
}

function judgeLegacySnapshots(snapshots: readonly StoredVolume[]): Finding {
  const exported = snapshots.filter((one) => one.exported).length;
  return warning(
    disksName,
    `${snapshots.length} snapshots of the legacy Go driver (${exported} exported), which hold no copy of a volume's ` +
      `data as far as RouterOS's manual tells: ${legacySnapshotsPage}`,
    "rds-csi audit --foreign names them",
  );
}

function judgeDamaged(damaged: readonly StoredVolume[]): Finding {
  const names = damaged.slice(0, maxNamed).map(({ id }) => id).join(", ");
  const more = damaged.length > maxNamed ? ` and ${damaged.length - maxNamed} more` : "";
  return problem(
    disksName,
    `${damaged.length} with a damaged record, which the driver leaves alone: ${names}${more}`,
    `/disk/set [find where slot="${
      damaged[0]!.id
    }"] comment="…" with its comment from a backup or an /export`,
  );
}

const portName = "nvme-port";

/** What there is to say about the port that volumes are exported on, as this machine sees it. */
interface PortFacts {
  readonly address: string;
  readonly port: number;
  readonly reach: Reach;
  /** The router's file-backed disks; undefined when it was not asked. */
  readonly volumes: readonly StoredVolume[] | undefined;
}

/** Judges whether volumes can be reached from here. A router listens only while it exports something. */
export function judgeNvmePort({ address, port, reach, volumes }: PortFacts): Finding {
  const location = `${address}:${port}`;
  const exported = volumes?.filter((volume) => volume.exported && volume.exportPort === port).length;
  const exports = exported === undefined ? "what is exported is not known" : `exported there: ${exported}`;
  switch (reach.state) {
    case "open":
      return fine(portName, `${location} answers; ${exports}`);
    case "refused":
      if (exported === 0) return fine(portName, `${location} refuses, as nothing is exported there`);
      return exported === undefined
        ? warning(
          portName,
          `${location} refuses: nothing is exported there, or it is the wrong place (${exports})`,
        )
        : problem(
          portName,
          `${location} refuses, though it should not; ${exports}`,
          "/disk/print where nvme-tcp-export",
        );
    case "silent":
    case "failed": {
      const found = `${location} cannot be reached from here (${reach.reason}); ${exports}`;
      const fix = `/ip/firewall/filter/add chain=input protocol=tcp dst-port=${port} src-address=NODES ` +
        "action=accept place-before=0, or --nvme-address ADDRESS";
      return exported === undefined || exported === 0
        ? warning(portName, found, fix)
        : problem(portName, found, fix);
    }
  }
}
