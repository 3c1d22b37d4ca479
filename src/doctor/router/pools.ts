import { type Fragment, ros } from "../../routeros/console/command.ts";
import { parseRows, type Row } from "../../routeros/console/json.ts";
import {
  findSlotsBelow,
  mayBeMounted,
  shownStateOf,
  slotsBelow,
  stateOf,
} from "../../routeros/store/rows.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { VolumeError } from "../../volume/errors.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import { formatBytes } from "../../volume/model/sizes.ts";
import { whyPoolUnreadable } from "../../volume/rules/absence.ts";
import { parseArrayState } from "../../volume/rules/array_state.ts";
import { routerFixes } from "./fixes.ts";
import { judgeLabels, labelsQuery, parseLabels } from "./labels.ts";
import type { CheckSettings, RouterCheck } from "./check.ts";

const poolName = "pool";
/** Share of a pool below which its free space is reported. */
const scarceShare = 20n;
/** Share below which a pool counts as full: file systems keep about as much for themselves. */
const fullShare = 100n;

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
  /** Slots of the disks that it lies on, such as that of which it is a partition. */
  readonly below: readonly string[];
  /** Why the router's row of it cannot be read; the other fields are then as far as they can be. Absent where it was read. */
  readonly unreadable?: string;
}

/** Checks whether the pools are mounted and healthy. */
export const poolsCheck: RouterCheck = {
  name: poolName,
  essential: true,
  namesVolumes: true,
  async run(router, settings) {
    const disks = parsePoolDisks(await router.read(poolName, poolsInFullQuery));
    const labelled = parseLabels(await router.read(poolName, labelsQuery));
    const { volumes } = await router.inventory();
    const slots = new Set(volumes.map(({ id }) => id));
    return [...judgePools(disks, settings, volumes), ...judgeLabels(labelled, slots)];
  },
};

/** The disks that can have pools. */
export const poolDisksQuery: Fragment =
  ros`/disk print detail as-value proplist=slot,fs,fs-label,mounted,mount-point,state,size,free where type!=${"file"}`;

/**
 * The same disks with all keys that the router knows. A list of keys is refused where one is unknown, and nobody must be advised
 * to mount what another machine or a volume's user writes to.
 */
const poolsInFullQuery: Fragment = ros`/disk print detail as-value where type!=${"file"}`;

/**
 * Parses the frame of {@linkcode poolDisksQuery}, or of one with all keys. A row that cannot be read is in the list all the same.
 *
 * @throws {VolumeError} unavailable when it is no list, or a disk has no slot
 */
export function parsePoolDisks(frame: string): PoolDisk[] {
  return parseRows(frame, "list of pools").map((row) => {
    const slot = row.text("slot");
    const unreadable = whyRowUnreadable(row);
    const isRead = unreadable === undefined;
    const textOf = (key: string) => row.find(key) ?? "";
    const bytesOf = (key: string) => isRead && row.hasInteger(key) ? row.integer(key) : 0n;
    return {
      slot,
      filesystem: textOf("fs").replace(/^-$/, ""),
      label: textOf("fs-label"),
      mounted: isRead ? row.flag("mounted", false) : mayBeMounted(row),
      mountPoint: textOf("mount-point").replace(/^\/+|\/+$/g, ""),
      state: shownStateOf(row),
      sizeBytes: bytesOf("size"),
      freeBytes: bytesOf("free"),
      filesystemUuid: textOf("fs-uuid"),
      master: row.isSet("raid-master") ? textOf("raid-master") : "",
      failed: row.findFlag("raid-member-failed") === true,
      exported: row.isSet("nvme-tcp-export") || row.isSet("iscsi-export"),
      below: findSlotsBelow(row),
      ...isRead ? {} : { unreadable },
    };
  });
}

function whyRowUnreadable(row: Row): string | undefined {
  try {
    for (const key of ["fs", "fs-label", "mount-point", "fs-uuid"]) row.text(key, "");
    if (row.isSet("raid-master")) row.text("raid-master");
    // As the driver reads them: what tells no space is no pool.
    const isPool = row.flag("mounted", false) && row.has("size") && row.has("free");
    if (isPool) { for (const key of ["size", "free"]) row.integer(key); }
    stateOf(row);
    slotsBelow(row);
    return undefined;
  } catch (error) {
    if (!VolumeError.is(error)) throw error;
    return error.message;
  }
}

/** Why the row of the pool of `path` cannot be read; undefined where it is read, or not mounted. */
export function whyUnreadable(disks: readonly PoolDisk[], path: string): string | undefined {
  const pools = disks.filter((disk) => disk.mounted && disk.unreadable === undefined);
  const unreadablePools = disks.flatMap(({ mounted, mountPoint, unreadable }) =>
    mounted && unreadable !== undefined ? [{ mountPoint, reason: unreadable }] : []
  );
  return whyPoolUnreadable({ pools, unreadablePools }, path);
}

/** The settings for judging pools. */
export type PoolSettings = Pick<CheckSettings, "basePaths" | "overcommit">;

/** A file-backed disk: it may be a volume, with whatever its users write to it. */
type FileDisk = Pick<StoredVolume, "id" | "exported">;

/** One finding for each pool: mounted ones, and disks with a file system that is not mounted. */
export function judgePools(
  disks: readonly PoolDisk[],
  settings: PoolSettings,
  files: readonly FileDisk[] = [],
): Finding[] {
  const slots = new Set(files.map(({ id }) => id));
  const exported = new Set(
    [...files, ...disks.map((disk) => ({ ...disk, id: disk.slot }))]
      .filter((disk) => disk.exported).map(({ id }) => id),
  );
  const odd = disks.filter(({ unreadable }) => unreadable !== undefined);
  const isMounted = (disk: PoolDisk) => disk.mounted && disk.mountPoint !== "" && !odd.includes(disk);
  const lent = disks.filter((disk) => isMounted(disk) && liesOn(disk, exported, disks));
  const mounted = disks.filter((disk) => isMounted(disk) && !lent.includes(disk));
  const unmounted = disks.filter((disk) =>
    !disk.mounted && disk.filesystem !== "" && !disk.exported && !odd.includes(disk) &&
    !liesOn(disk, exported.union(slots), disks) &&
    ![...mounted, ...odd].some((pool) => isDriveOf(disk, pool))
  );
  const second = secondMounts(mounted, settings);
  const findings = [
    ...odd.map((disk) => judgeOdd(disk, disks, settings)),
    ...lent.map(judgeLent),
    ...second.map(([disk, pool]) => judgeSecond(disk, pool)),
    ...mounted.filter((pool) => !second.some(([disk]) => disk === pool)).map((pool) =>
      judgeMounted(pool, disks)
    ),
    ...mounted.flatMap((pool) => judgePromises(pool, settings)),
    ...unmounted.map((disk) => judgeUnmounted(disk, mounted)),
  ];
  if (mounted.length > 0 || odd.some((disk) => disk.mounted)) return findings;
  return [
    ...findings,
    problem(poolName, "no pool is mounted, so there is no room for volumes", routerFixes.poolLook()),
  ];
}

/** The driver uses no such pool. A disk that cannot be one of its pools is no concern of it. */
function judgeOdd(
  { slot, unreadable }: PoolDisk,
  disks: readonly PoolDisk[],
  { basePaths }: Pick<PoolSettings, "basePaths">,
): Finding {
  const judge = basePaths.some((path) => whyUnreadable(disks, path) === unreadable) ? problem : warning;
  return judge(
    poolName,
    `${slot}: the router's row of it cannot be read: ${unreadable}`,
    routerFixes.poolLook(slot),
  );
}

/** Whether a disk is a part of one of these, over any number of steps. */
function liesOn({ below }: PoolDisk, slots: ReadonlySet<string>, disks: readonly PoolDisk[]): boolean {
  const seen = new Set<string>();
  const rest = [...below];
  for (let slot = rest.pop(); slot !== undefined; slot = rest.pop()) {
    if (slots.has(slot)) return true;
    if (seen.has(slot)) continue;
    seen.add(slot);
    rest.push(...disks.filter((disk) => disk.slot === slot).flatMap((disk) => disk.below));
  }
  return false;
}

/** The router and whoever has the disk write to it without knowing of each other. */
function judgeLent({ slot, mountPoint, below }: PoolDisk): Finding {
  const found = `/${mountPoint}: ${slot} is a part of ${below.join(", ")}, which is exported: ` +
    "the router writes to it as well";
  return problem(poolName, found, routerFixes.poolLook(slot));
}

/** The mount of a Btrfs over several drives shows on one of them; the others only show that they belong to it. */
function isDriveOf({ filesystem, filesystemUuid }: PoolDisk, pool: PoolDisk): boolean {
  return filesystem === "btrfs" && pool.filesystem === "btrfs" && filesystemUuid !== "" &&
    filesystemUuid === pool.filesystemUuid;
}

/** Further mounts of a file system, each with the first: that is one under which volumes lie, if there is any. */
function secondMounts(
  mounted: readonly PoolDisk[],
  { basePaths }: Pick<PoolSettings, "basePaths">,
): readonly (readonly [PoolDisk, PoolDisk])[] {
  const isUsed = ({ mountPoint }: PoolDisk) => basePaths.some((path) => poolOf(path) === mountPoint);
  const ordered = mounted.toSorted((a, b) => Number(isUsed(b)) - Number(isUsed(a)));
  return ordered.flatMap((disk, index) => {
    const first = ordered.slice(0, index).find((pool) =>
      isDriveOf(disk, pool) && disk.mountPoint !== pool.mountPoint
    );
    return first === undefined ? [] : [[disk, first] as const];
  });
}

/** The router mounts each drive of a Btrfs that is not told otherwise, and the driver refuses subvolumes meanwhile. */
function judgeSecond({ slot, mountPoint }: PoolDisk, pool: PoolDisk): Finding {
  const found =
    `/${mountPoint}: ${slot} is a drive of the file system of /${pool.mountPoint}, which the router ` +
    "mounts a second time: the driver makes and removes no subvolume on it meanwhile";
  return problem(poolName, found, routerFixes.poolTwice(slot, mountPoint));
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
  const found = `/${mountPoint}: ` +
    `${text.join(", ")}, ${formatBytes(freeBytes)} of ${formatBytes(sizeBytes)} free`;
  const faults = [pool, ...others].flatMap((drive) => faultsBelow(drive, disks, new Set()));
  if (!parseArrayState(state).sound || faults.length > 0) {
    const reason = faults.length === 0 ? "its state is not clean" : faults.join(", ");
    return problem(poolName, `${found}; ${reason}`, routerFixes.poolLook(slot));
  }
  if (freeBytes * fullShare < sizeBytes) {
    const reason = "it is full: volumes that do not have all their blocks yet get write errors";
    return problem(poolName, `${found}; ${reason}`, routerFixes.poolFull());
  }
  if (filesystem === "btrfs" && label === "") {
    const reason = "without a label its subvolumes cannot be named: no snapshots";
    return warning(poolName, `${found}; ${reason}`, routerFixes.poolLabel());
  }
  if (freeBytes * scarceShare < sizeBytes) {
    return warning(
      poolName,
      `${found}; the pool may run out of space when volumes are written`,
      routerFixes.poolFull(),
    );
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

/** Promising more than the pool's size works only if a volume takes no unused space. On Btrfs nobody has measured it. */
function judgePromises(pool: PoolDisk, { basePaths, overcommit }: PoolSettings): Finding[] {
  const { mountPoint, filesystem } = pool;
  const isUsed = basePaths.some((path) => poolOf(path) === mountPoint);
  if (!isUsed || filesystem !== "xfs" || overcommit <= 1) return [];
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
