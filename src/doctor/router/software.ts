import { packagesQuery, resourceQuery } from "../../routeros/store/queries.ts";
import {
  isAtLeast,
  parseResource,
  type RouterInfo,
  safeVersions,
  storagePackage,
} from "../../routeros/console/router_info.ts";
import type { RouterCheck } from "./check.ts";
import { routerFixes } from "./fixes.ts";
import { judgeProfileVersion } from "./profile.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import { parseRow, parseRows, type Row } from "../../routeros/console/json.ts";
import { ros } from "../../routeros/console/command.ts";

const versionName = "version";

/** Checks whether RouterOS is new enough, what it does not support, and whether it is the one that was probed. */
export const versionCheck: RouterCheck = {
  name: versionName,
  essential: true,
  async run(router, { user, profile }) {
    const { info } = parseResource(await router.read(versionName, resourceQuery));
    return [judgeVersion(info, user), ...judgeProfileVersion(profile, info.version)];
  },
};

/**
 * Judges what a version supports for this driver, and whether routers with it are taken over through SSH.
 *
 * @param user the driver's user on the router
 */
export function judgeVersion(
  { version, board, supported, sshExploited }: RouterInfo,
  user: string,
): Finding {
  const found = board === "" ? version : `${version} on ${board}`;
  // Every version without these holes has all that the driver uses.
  if (!sshExploited) return fine(versionName, found);
  const lacks = [
    ...(supported ? [] : ["too old; the driver needs 7.21, without which no node could be fenced"]),
    ...(isAtLeast(version, 7, 23) ? [] : ["no /file copy before 7.23: snapshots and clones only on Btrfs"]),
    `it has holes in SSH by which routers are being taken over, closed in ${safeVersions}`,
  ];
  const property = isAtLeast(version, 7, 24) ? "available-from" : "address";
  return problem(versionName, `${found}: ${lacks.join("; ")}`, routerFixes.sshExploited(user, property));
}

const packageName = "package";

/** Checks whether the storage package is installed. */
export const packageCheck: RouterCheck = {
  name: packageName,
  essential: true,
  run: async (
    router,
  ) => [judgePackages(parseRows(await router.read(packageName, packagesQuery), "list of packages"))],
};

/** Judges the storage package in a list of packages. */
export function judgePackages(rows: readonly Row[]): Finding {
  const storage = rows.find((row) => row.text("name") === storagePackage);
  if (storage === undefined) {
    return problem(
      packageName,
      `${storagePackage} is not installed`,
      routerFixes.packageMissing(storagePackage),
    );
  }
  const found = `${storagePackage} ${storage.text("version", "")}`.trim();
  if (!storage.flag("disabled", false)) return fine(packageName, found);
  return problem(
    packageName,
    `${found} is disabled`,
    routerFixes.packageDisabled(storagePackage),
  );
}

const clockName = "clock";
const maxDifferenceMs = 30_000;

/** Checks whether the router's clock agrees with this machine's. */
export const clockCheck: RouterCheck = {
  name: clockName,
  essential: false,
  async run(router, { clock }) {
    const sentMs = clock.now();
    const frame = await router.read(clockName, ros`/system clock print as-value`);
    const hereMs = (sentMs + clock.now()) / 2;
    return [judgeClock(parseClock(parseRow(frame, "clock")), hereMs)];
  },
};

/** @param thereMs the router's time in milliseconds since the Unix epoch; undefined when it cannot be read */
export function judgeClock(thereMs: number | undefined, hereMs: number): Finding {
  if (thereMs === undefined) {
    return warning(clockName, "the router's time has an unknown form", routerFixes.clockUnknown());
  }
  const seconds = Math.round((thereMs - hereMs) / 1000);
  if (Math.abs(thereMs - hereMs) <= maxDifferenceMs) {
    return fine(clockName, `${Math.abs(seconds)} s off this machine's clock`);
  }
  return warning(
    clockName,
    `the router's is ${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"} this machine's: ` +
      "logs and certificates will not match",
    routerFixes.clockOff(),
  );
}

/** Parses `/system clock`: milliseconds since the Unix epoch; undefined when a part of it has an unknown form. */
export function parseClock(row: Row): number | undefined {
  const ms = Date.parse(`${row.text("date", "")}T${row.text("time", "").padStart(8, "0")}Z`);
  const offsetMs = parseOffset(row);
  return Number.isNaN(ms) || offsetMs === undefined ? undefined : ms - offsetMs;
}

/** `+02:00`, or seconds; the router prints negative seconds as unsigned 32 bits. */
function parseOffset(row: Row): number | undefined {
  if (row.hasInteger("gmt-offset")) {
    const seconds = Number(row.integer("gmt-offset"));
    return (seconds >= 2 ** 31 ? seconds - 2 ** 32 : seconds) * 1000;
  }
  const match = /^([+-]?)(\d{1,2}):(\d{2})(?::\d{2})?$/.exec(row.text("gmt-offset", ""));
  if (match === null) return undefined;
  return (match[1] === "-" ? -1 : 1) * (Number(match[2]) * 60 + Number(match[3])) * 60_000;
}
