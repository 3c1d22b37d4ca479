import { type Fragment, ros } from "../../routeros/console/command.ts";
import { parseRows, type Row } from "../../routeros/console/json.ts";
import type { RouterCheck } from "./check.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import { formatBytes } from "./sizes.ts";

const check = "pool";
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
  name: check,
  essential: true,
  run: async (router) => judgePools(parsePoolDisks(await router.read(check, poolDisksQuery))),
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
    problem(check, "no pool is mounted, so that volumes have no place", "/disk/print detail"),
  ];
}

function judgeMounted(disk: PoolDisk): Finding {
  const { mountPoint, filesystem, label, state, sizeBytes, freeBytes } = disk;
  const words = [filesystem, label === "" ? "no label" : `label ${label}`, ...(state === "" ? [] : [state])];
  const found = `/${mountPoint}: ${words.join(", ")}, ${formatBytes(freeBytes)} of ${
    formatBytes(sizeBytes)
  } free`;
  if (state !== "" && state !== "clean") {
    return problem(check, `${found}; its state is not clean`, `/disk/print detail where slot="${disk.slot}"`);
  }
  if (filesystem === "btrfs" && label === "") {
    return warning(check, `${found}; without a label its subvolumes cannot be named: no snapshots`);
  }
  if (freeBytes * scarceShare < sizeBytes) {
    return warning(check, `${found}; what was promised to volumes may not be there when it is written`);
  }
  return fine(check, found);
}

/** A file system that a router could mount, but does not; it may be meant so. */
function judgeUnmounted({ slot, filesystem, label }: PoolDisk): Finding {
  const name = label === "" ? filesystem : `${filesystem}, label ${label}`;
  return warning(
    check,
    `${slot} (${name}) is not mounted`,
    `/disk/set [find where slot="${slot}"] disabled=no mount-filesystem=yes`,
  );
}

function bytesOf(row: Row, key: string): bigint {
  return row.hasInteger(key) ? row.integer(key) : 0n;
}
