import { ros } from "../../routeros/console/command.ts";
import { parseRow, parseRows, type Row } from "../../routeros/console/json.ts";
import { markedQuery } from "../../routeros/directories/statements.ts";
import { poolsQuery } from "../../routeros/store/queries.ts";
import { parseFiles } from "../../routeros/store/rows.ts";
import { isInside } from "../../volume/model/directory/handle.ts";
import { directoryMark, markedDirectories } from "../../volume/model/directory/names.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type Finding, fine, problem, skipped, warning } from "../../volume/model/finding.ts";
import { parentFolder, poolOf } from "../../volume/model/ids/ids.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { Reach } from "../../host/network.ts";
import type { CheckSettings, RouterCheck, RouterClient } from "./check.ts";
import { routerFixes } from "./fixes.ts";
import { onlyNodes } from "./storage.ts";

const shareName = "share";
const settingsQuery = ros`/disk settings print as-value`;

const overNfs = "nfs-sharing";

/** The properties by which the router shares a pool with others; an older one may lack some. */
const sharings: readonly string[] = [overNfs, "smb-sharing", "media-sharing"];

/** A mounted pool, and how the router shares it. */
interface MountedPool {
  readonly slot: string;
  /** Without slashes. */
  readonly mountPoint: string;
  /** The properties by which it is shared. */
  readonly sharing: readonly string[];
}

/** What the router shows of its shares. */
export interface ShareFacts {
  readonly pools: readonly MountedPool[];
  readonly volumes: readonly Pick<StoredVolume, "imagePath">[];
  /** The paths of this cluster's directories on the share; empty where none is known. */
  readonly directories: readonly string[];
}

/** Checks that no block volume lies on a shared pool, and for a driver of directories that there is a share for them. */
export const sharesCheck: RouterCheck = {
  name: shareName,
  essential: true,
  async run(router, settings) {
    const pools = parseRows(await router.read(shareName, poolsQuery), "list of disks").map((row) => ({
      slot: row.text("slot"),
      // The check of the pools names the row of one that cannot be read.
      mountPoint: (row.find("mount-point") ?? "").replace(/^\/+|\/+$/g, ""),
      sharing: sharings.filter((property) => row.isSet(property)),
    }));
    const { volumes } = await router.inventory();
    const directories = await directoriesOf(router, settings);
    const facts = { pools, volumes, directories };
    const judge = settings.kind === "directory" ? judgeShare : judgePoolsOfVolumes;
    return [...judge(facts, settings), ...await autoSharing(router)];
  },
};

/** Whether the router shares the disks that it mounts by itself. */
async function autoSharing(router: Pick<RouterClient, "read">): Promise<readonly Finding[]> {
  try {
    return judgeAutoSharing(parseRow(await router.read(shareName, settingsQuery), "settings of disks"));
  } catch (error) {
    if (!VolumeError.is(error, "unavailable")) throw error;
    return [skipped(shareName, `cannot judge what the router shares by itself: ${error.message}`)];
  }
}

/** Judges the settings of all disks. */
export function judgeAutoSharing(row: Row): Finding[] {
  const set = ["auto-smb-sharing", "auto-media-sharing"].filter((name) => row.isSet(name));
  if (set.length === 0) return [];
  const found = `the router shares what it mounts by itself, pools with volumes too: ${set.join(", ")}`;
  return [warning(shareName, found, routerFixes.autoSharingOff())];
}

/** This cluster's directories anywhere on the share. */
async function directoriesOf(
  router: RouterClient,
  { kind, basePaths, cluster }: CheckSettings,
): Promise<readonly string[]> {
  const [first] = basePaths;
  if (kind !== "directory" || cluster === undefined || first === undefined) return [];
  const share = `/${poolOf(first)}`;
  const mark = directoryMark(cluster);
  const files = parseFiles(
    await router.read(shareName, markedQuery(share, mark)),
    (path) => isInside(path, share),
  );
  return markedDirectories(files.map(({ path }) => path), mark).map(({ path }) => path);
}

/** For a driver of block volumes. */
export function judgePoolsOfVolumes(
  { pools, volumes }: ShareFacts,
  { basePaths }: Pick<CheckSettings, "basePaths">,
): Finding[] {
  const findings = pools.filter(({ sharing }) => sharing.length > 0).flatMap(
    ({ slot, mountPoint, sharing }) => {
      const images = imagesOn(volumes, mountPoint);
      if (images.length === 0 && !basePaths.some((path) => poolOf(path) === mountPoint)) return [];
      const what = images.length === 0
        ? "is a pool for block volumes"
        : `holds ${images.length} images of block volumes`;
      const found = `/${mountPoint} ${what}, and the router shares it (${sharing.join(", ")}): ` +
        "others can read and perhaps overwrite them";
      return [problem(shareName, found, routerFixes.shareOff(slot, ...sharing))];
    },
  );
  return findings.length > 0 ? findings : [fine(shareName, "no pool with block volumes is shared")];
}

/** For a driver of directories. */
export function judgeShare(
  { pools, volumes, directories }: ShareFacts,
  { basePaths }: Pick<CheckSettings, "basePaths">,
): Finding[] {
  const mountPoint = poolOf(basePaths[0] ?? "");
  const share = pools.find((pool) => pool.mountPoint === mountPoint);
  if (share === undefined) {
    return [problem(shareName, `/${mountPoint} is on no mounted pool`, routerFixes.poolLook())];
  }
  const images = imagesOn(volumes, mountPoint);
  const findings: Finding[] = [];
  // Sharing would open the images at once: they have to go first.
  if (!share.sharing.includes(overNfs) && images.length === 0) {
    findings.push(
      problem(shareName, `/${mountPoint} is not shared over NFS`, routerFixes.shareOn(share.slot)),
    );
  }
  if (images.length > 0) {
    const found = `/${mountPoint} holds ${images.length} images of disks, such as ${images[0]}: ` +
      "anyone who reaches port 2049 could read and overwrite them, so the driver makes no directory there";
    findings.push(problem(shareName, found, routerFixes.ownShare()));
  }
  const misplaced = directories.filter((path) => !basePaths.some((base) => isInside(path, base)));
  if (misplaced.length > 0) {
    const found = `${misplaced.length} directories of this cluster lie outside of --base-path, ` +
      `such as ${misplaced[0]}: the driver neither lists nor deletes them`;
    findings.push(warning(shareName, found, routerFixes.moreBasePaths(parentFolder(misplaced[0]!))));
  }
  const well =
    `/${mountPoint} is shared over NFS and holds no image; directories of this cluster: ${directories.length}`;
  return findings.length > 0 ? findings : [fine(shareName, well)];
}

function imagesOn(volumes: ShareFacts["volumes"], mountPoint: string): string[] {
  return volumes.map(({ imagePath }) => imagePath).filter((path) => poolOf(path) === mountPoint);
}

const portName = "nfs-port";

/** Judges whether this machine reaches the router's NFS server; a node may reach it where this machine does not. */
export function judgeNfsPort(
  { address, port, reach, isNode }: {
    readonly address: string;
    readonly port: number;
    readonly reach: Reach;
    /** Whether this machine has to reach the port: it is a node. */
    readonly isNode: boolean;
  },
): Finding {
  const location = `${address}:${port}`;
  if (reach.state === "open") return fine(portName, `${location} answers`);
  if (reach.state === "unresolved") {
    return problem(portName, `the name ${address} cannot be resolved: ${reach.reason}`, routerFixes.name());
  }
  const found = `${location} cannot be reached from here (${reach.reason})`;
  if (!isNode) return skipped(portName, `${found}; ${onlyNodes}`);
  return warning(portName, found, routerFixes.portSilent(port));
}
