import { VolumeError } from "../../volume/errors.ts";
import { parseRow, parseRows, type Row, unreadable } from "./json.ts";

/** What the driver knows about its router. */
export interface RouterInfo {
  /** The router's spelling, such as `7.24 (stable)`. */
  readonly version: string;
  /** Such as `RDS2216`; "" when the router does not print it. */
  readonly board: string;
  /** Whether the driver can work with it: fencing needs an NQN of its own for each export, which came with 7.21. */
  readonly supported: boolean;
  /** Whether it has holes in SSH that are exploited, see {@linkcode isSshExploited}. */
  readonly sshExploited: boolean;
}

/**
 * Parses the router's own description from `/system resource print`.
 *
 * @throws {VolumeError} unavailable when it names no version
 */
export function parseRouterInfo(resource: Row): RouterInfo {
  const version = resource.text("version");
  return {
    version,
    board: resource.text("board-name", ""),
    supported: isAtLeast(version, 7, 21),
    sshExploited: isSshExploited(version),
  };
}

/** The versions without the holes of {@linkcode isSshExploited}, for people. */
export const safeVersions = "7.23.4, or 7.24.2 of 7.24";

/** The first patch without the holes, by the minor version of RouterOS 7; later minor versions never had them. */
const safePatches: ReadonlyMap<number, number> = new Map([[23, 4], [24, 2]]);

/**
 * Whether a RouterOS version lacks the fixes of CVE-2026-67279, CVE-2026-86060 and CVE-2026-67276, by which routers are
 * taken over through SSH. A beta or release candidate of a version with the fixes may lack them, and so may a version
 * that cannot be parsed.
 */
export function isSshExploited(version: string): boolean {
  const match = /^(\d+)\.(\d+)(?:\.(\d+))?([a-z]*)/.exec(version);
  if (match === null) return true;
  const [major, minor, patch] = match.slice(1, 4).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
  ];
  if (major !== 7 || minor > 24) return major < 7;
  const safePatch = safePatches.get(minor);
  if (safePatch === undefined) return true;
  return patch < safePatch || (patch === safePatch && match[4] !== "");
}

/** Whether a RouterOS version is `major.minor` or newer; false for one that cannot be parsed. */
export function isAtLeast(version: string, major: number, minor: number): boolean {
  const match = /^(\d+)\.(\d+)/.exec(version);
  if (match === null) return false;
  const [ownMajor, ownMinor] = [Number(match[1]), Number(match[2])];
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

/**
 * Parses a frame of `/system resource print`: the router's description, and its uptime in milliseconds.
 *
 * @throws {VolumeError} unavailable when it names no version, or has no uptime in a known form
 */
export function parseResource(frame: string): { readonly info: RouterInfo; readonly upMs: number } {
  const row = parseRow(frame, "system resource");
  const uptime = row.text("uptime");
  const upMs = parseUptime(uptime);
  if (upMs === undefined) {
    throw unreadable(
      "system resource",
      `its uptime has an unknown form: ${JSON.stringify(uptime.slice(0, 64))}`,
    );
  }
  return { info: parseRouterInfo(row), upMs };
}

const clockForm = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d{1,2}):(\d{2}):(\d{2})(?:\.\d+)?)?$/;
const letterForm = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)(?:\.\d+)?s)?(?:\d+ms)?$/;
const daySeconds = 86_400;

/**
 * Milliseconds of a RouterOS duration such as `2w1d03:04:05`, `3d04:05:06`, `00:01:02` or `1w2d3h4m5s`, whole seconds
 * only; undefined when it has another form. A year counts as 365 days.
 */
export function parseUptime(text: string): number | undefined {
  const match = text === "" ? null : clockForm.exec(text) ?? letterForm.exec(text);
  if (match === null) return undefined;
  const [years, weeks, days, hours, minutes, seconds] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const wholeDays = years! * 365 + weeks! * 7 + days!;
  return (wholeDays * daySeconds + hours! * 3600 + minutes! * 60 + seconds!) * 1000;
}

/** The package that provides file-backed disks and NVMe exports. */
export const storagePackage = "rose-storage";

/**
 * Checks that RouterOS is new enough for this driver.
 *
 * @throws {VolumeError} precondition when it is not
 */
export function assertSupported({ version, supported }: RouterInfo): void {
  if (supported) return;
  throw new VolumeError(
    "precondition",
    `Cannot work with this router because its RouterOS is too old, so that no node could be fenced: version=${version} ` +
      "needed=7.21; upgrade it (/system/package/update)",
  );
}

/**
 * Checks that a router has the storage package.
 *
 * @param packagesFrame the output of `/system package print`
 * @throws {VolumeError} precondition when it is missing or disabled
 */
export function assertStoragePackage(router: RouterInfo, packagesFrame: string): void {
  const rows = parseRows(packagesFrame, "list of packages");
  const storage = rows.find((row) => row.text("name") === storagePackage);
  if (storage !== undefined && !storage.flag("disabled", false)) return;
  const state = storage === undefined ? "missing" : "disabled";
  const action = storage === undefined
    ? "install it (upload the package of the same version, then /system/package/apply-changes)"
    : `enable it (/system/package/enable ${storagePackage}, then /system/package/apply-changes)`;
  throw new VolumeError(
    "precondition",
    `Cannot work with this router because a package is ${state}: package=${storagePackage} version=${router.version}; ${action}`,
  );
}
