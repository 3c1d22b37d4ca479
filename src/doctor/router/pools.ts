import { type Fragment, ros } from "../../routeros/console/command.ts";
import { parseRows, type Row } from "../../routeros/console/json.ts";
import { stateOf } from "../../routeros/store/rows.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import { poolOf } from "../../volume/model/ids.ts";
import { formatBytes } from "../../volume/model/sizes.ts";
import { parseArrayState } from "../../volume/rules/array_state.ts";
import { routerFixes } from "./fixes.ts";
import { judgeLabels, labelsQuery, parseLabels } from "./labels.ts";
import type { CheckSettings, RouterCheck, RouterClient } from "./check.ts";

const poolName = "pool";
/** Share of a pool below which its free space is reported. */
const scarceShare = 20n;

/** The fields of a disk that is not file-backed which matter for a pool on it. */
export interface PoolDisk {
  readonly slot: string;
  /** "" when the router recognises none. */
  readonly filesystem: string;
  readonly label: string;
  readonly mounted: boolean;
  /** Without slashes; "" when it is not mounted. */
  readonly mountPoint: string;
  /** "" when the router does not show it. */
  readonly state: string;
  readonly sizeBytes: bigint;
  readonly freeBytes: bigint;
  /** UUID of the file system, which all its drives share; "" when the router does not show it. */
  readonly filesystemUuid: string;
  /** The slot of its array; "" for none. */
  readonly master: string;
  /** Whether its array has dropped it. */
  readonly failed: boolean;
  /** Whether it is exported as a whole: then its file system belongs to another machine. */
  readonly exported: boolean;
}

/** Checks whether the pools are mounted and healthy. */
export const poolsCheck: RouterCheck = {
  name: poolName,
  essential: true,
  async run(router, settings) {
    const pools = judgePools(await readPoolDisks(router), settings);
    const labelled = parseLabels(await router.read(poolName, labelsQuery));
    const volumes = new Set((await router.inventory()).volumes.map(({ id }) => id));
    return [...pools, ...judgeLabels(labelled, volumes)];
  },
};

/** The disks that can have pools. */
export const poolDisksQuery: Fragment =
  ros`/disk print detail as-value proplist=slot,fs,fs-label,mounted,mount-point,state,size,free where type!=${"file"}`;

/** The same disks, with their parts. */
const poolPartsQuery: Fragment =
  ros`/disk print detail as-value proplist=slot,fs,fs-label,fs-uuid,mounted,mount-point,state,size,free,raid-master,raid-member-failed,nvme-tcp-export,iscsi-export where type!=${"file"}`;

/** The same disks with all keys that the router knows: a longer answer. */
const poolsInFullQuery: Fragment = ros`/disk print detail as-value where type!=${"file"}`;

/**
 * A RouterOS that does not know a key may refuse the whole query. The others still count: a drive that is exported has to be
 * known as one, because nobody must be advised to mount what another machine writes to.
 */
async function readPoolDisks(router: RouterClient): Promise<PoolDisk[]> {
  try {
    return parsePoolDisks(await router.read(poolName, poolPartsQuery));
  } catch (error) {
    if (!VolumeError.is(error, "unavailable")) throw error;
    return parsePoolDisks(await router.read(poolName, poolsInFullQuery));
  }
}

/**
 * Parses the frame of {@linkcode poolDisksQuery}, or of one with more keys.
 *
 * @throws {VolumeError} unavailable when a disk cannot be parsed
 */
export function parsePoolDisks(frame: string): PoolDisk[] {
  return parseRows(frame, "list of pools").map((row) => ({
    slot: row.text("slot"),
    filesystem: row.text("fs", "").replace(/^-$/, ""),
    label: row.text("fs-label", ""),
    mounted: row.flag("mounted", false),
    mountPoint: row.text("mount-point", "").replace(/^\/+|\/+$/g, ""),
    state: stateOf(row),
    sizeBytes: bytesOf(row, "size"),
    freeBytes: bytesOf(row, "free"),
    filesystemUuid: row.text("fs-uuid", ""),
    master: row.isSet("raid-master") ? row.text("raid-master") : "",
    failed: row.isSet("raid-member-failed"),
    exported: row.isSet("nvme-tcp-export") || row.isSet("iscsi-export"),
  }));
}

/** The settings for judging pools. */
export type PoolSettings = Pick<CheckSettings, "basePaths" | "overcommit" | "allocation">;

/** One finding for each pool: mounted ones, and disks with a file system that is not mounted. */
export function judgePools(disks: readonly PoolDisk[], settings: PoolSettings): Finding[] {
  const mounted = disks.filter((disk) => disk.mounted && disk.mountPoint !== "");
  const unmounted = disks.filter((disk) =>
    !disk.mounted && disk.filesystem !== "" && !disk.exported &&
    !mounted.some((pool) => isDriveOf(disk, pool))
  );
  const findings = [
    ...mounted.map((pool) => judgeMounted(pool, disks)),
    ...mounted.flatMap((pool) => judgePromises(pool, settings)),
    ...unmounted.map((disk) => judgeUnmounted(disk, mounted)),
  ];
  if (mounted.length > 0) return findings;
  return [
    ...findings,
    problem(poolName, "no pool is mounted, so there is no room for volumes", routerFixes.poolLook()),
  ];
}

/** The mount of a Btrfs over several drives shows on one of them; the others only show that they belong to it. */
function isDriveOf({ filesystem, filesystemUuid }: PoolDisk, pool: PoolDisk): boolean {
  return filesystem === "btrfs" && pool.filesystem === "btrfs" && filesystemUuid !== "" &&
    filesystemUuid === pool.filesystemUuid;
}

function judgeMounted(pool: PoolDisk, disks: readonly PoolDisk[]): Finding {
  const { slot, mountPoint, filesystem, label, state, sizeBytes, freeBytes } = pool;
  const others = disks.filter((disk) => disk !== pool && isDriveOf(disk, pool));
  const text = [
    filesystem,
    label === "" ? "no label" : `label ${label}`,
    ...others.length === 0 ? [] : [`with ${others.map((disk) => disk.slot).join(", ")}`],
    ...(state === "" ? [] : [state]),
  ];
  const found = `/${mountPoint}: ${text.join(", ")}, ${formatBytes(freeBytes)} of ${
    formatBytes(sizeBytes)
  } free`;
  const faults = [pool, ...others].flatMap((drive) => faultsBelow(drive, disks, new Set()));
  if (!parseArrayState(state).sound || faults.length > 0) {
    const reason = faults.length === 0 ? "its state is not clean" : faults.join(", ");
    return problem(poolName, `${found}; ${reason}`, routerFixes.poolLook(slot));
  }
  if (filesystem === "btrfs" && label === "") {
    const reason = "without a label its subvolumes cannot be named: no snapshots";
    return warning(poolName, `${found}; ${reason}`, routerFixes.poolLabel());
  }
  if (freeBytes * scarceShare < sizeBytes) {
    return warning(poolName, `${found}; the pool may run out of space when volumes are written`);
  }
  return fine(poolName, found);
}

/** Faults of the members of an array, and of theirs: a stripe over mirrors is clean while a mirror is not. */
function faultsBelow({ slot }: PoolDisk, disks: readonly PoolDisk[], seen: Set<string>): string[] {
  if (seen.has(slot)) return [];
  seen.add(slot);
  return disks.filter(({ master }) => master === slot).flatMap((member) => [
    ...parseArrayState(member.state).sound ? [] : [`${member.slot} below it is ${member.state}`],
    ...member.failed ? [`its member ${member.slot} has failed`] : [],
    ...faultsBelow(member, disks, seen),
  ]);
}

/** Promising more than the pool's size works only if a volume takes no unused space. */
function judgePromises(pool: PoolDisk, { basePaths, overcommit, allocation }: PoolSettings): Finding[] {
  const { mountPoint, filesystem } = pool;
  const isUsed = basePaths.some((path) => poolOf(path) === mountPoint);
  const inFull = allocation === undefined ? filesystem === "xfs" : allocation === "full";
  if (!isUsed || !inFull || overcommit <= 1) return [];
  const found = `/${mountPoint}: a volume takes its whole size there at once (${filesystem}), so that ` +
    `--overcommit ${overcommit} promises more than the pool holds`;
  return [warning(poolName, found, routerFixes.overcommit())];
}

/** A file system that the router could mount, but does not; it may be intended. */
function judgeUnmounted({ slot, filesystem, label }: PoolDisk, mounted: readonly PoolDisk[]): Finding {
  const name = label === "" ? filesystem : `${filesystem}, label ${label}`;
  const found = `${slot} (${name}) is not mounted`;
  const twin = mounted.find((pool) => filesystem === "btrfs" && label !== "" && pool.label === label);
  return warning(
    poolName,
    found,
    twin === undefined ? routerFixes.poolUnmounted(slot) : routerFixes.poolCopy(twin.mountPoint),
  );
}

function bytesOf(row: Row, key: string): bigint {
  return row.hasInteger(key) ? row.integer(key) : 0n;
}
