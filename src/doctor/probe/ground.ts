import { parseRows } from "../../routeros/console/json.ts";
import { command, ros } from "../../routeros/console/command.ts";
import { parseResource, type RouterInfo, safeVersions } from "../../routeros/console/router_info.ts";
import { fileName, holding, imagePathOf, resourceQuery } from "../../routeros/store/queries.ts";
import { poolOf } from "../../volume/model/ids/ids.ts";
import { parseArrayState } from "../../volume/rules/array_state.ts";
import { parsePoolDisks, type PoolDisk, poolDisksQuery, whyUnreadable } from "../router/pools.ts";
import { isScratchName } from "./names.ts";
import type { ProbeSession } from "./session.ts";

/** A router, and the folder on it in which an acceptance run wants to make things. */
export interface Ground {
  readonly router: RouterInfo;
  readonly uptimeMs: number;
  /** Every disk that is not file-backed. */
  readonly disks: readonly PoolDisk[];
  /** The pool that the folder is on; undefined where none is mounted there. */
  readonly pool: PoolDisk | undefined;
  /** Type of the folder's entry; undefined where there is none. */
  readonly folderType: string | undefined;
  /** What lies in the folder, with one leading slash. */
  readonly contents: readonly string[];
  /** Image paths of every file-backed disk on the router, with one leading slash. */
  readonly images: readonly string[];
  /** Shared directories and folders of name plates of any cluster, in the folders that it is in, with one leading slash. */
  readonly around: readonly string[];
}

/**
 * Reads what decides whether a run may use a folder. It changes nothing.
 *
 * @throws {VolumeError} unavailable when the router refuses or cannot be asked
 */
export async function readGround(line: ProbeSession, basePath: string): Promise<Ground> {
  const { info, upMs } = parseResource(await line.read(resourceQuery));
  const disks = parsePoolDisks(await line.read(poolDisksQuery));
  const images = await line.read(
    ros`/disk print detail as-value proplist=slot,file-path where type=${"file"}`,
  );
  const folder = await line.read(
    ros`/file print detail as-value proplist=name,type where name=${fileName(basePath)}`,
  );
  const within = await line.read(
    ros`/file print detail as-value proplist=name,type where name~${holding(`${fileName(basePath)}/`)}`,
  );
  const around = await line.read(
    ros`/file print detail as-value proplist=name,type where type=${"directory"} and name~${
      aroundForm(basePath)
    }`,
  );
  const paths = parseRows(within, "list of files").map((row) => imagePathOf(row.text("name")));
  return {
    router: info,
    uptimeMs: upMs,
    disks,
    pool: disks.find((disk) => disk.mounted && disk.mountPoint === poolOf(basePath)),
    folderType: parseRows(folder, "folder").find((row) => imagePathOf(row.text("name")) === basePath)?.text(
      "type",
    ),
    contents: paths.filter((path) => path.startsWith(`${basePath}/`)),
    images: parseRows(images, "list of disks").map((row) => imagePathOf(row.text("file-path"))),
    around: parseRows(around, "list of files").map((row) => imagePathOf(row.text("name"))),
  };
}

/** What a driver makes in a base path besides images: shared directories, and the folder of a cluster's name plates. */
function aroundForm(basePath: string): string {
  const names = fileName(basePath).split("/").map((name) => holding(name));
  const folders = names.slice(1).map((_name, count) => names.slice(0, count + 1).join("/"));
  return `^(${folders.join("|")})/(names-of-|[^/]+[.])${"[0-9a-f]".repeat(8)}$`;
}

/** How a run tells its own objects, which an earlier run that was killed may have left. */
export interface OwnObjects {
  /** The slots of its volumes and the ids of its snapshots. */
  readonly ids: readonly string[];
  /** Eight hex digits. */
  readonly cluster: string;
}

/** Whether the last names of a path were given by a run, or by its probe. */
export function isOwnPath(path: string, basePath: string, { ids, cluster }: OwnObjects): boolean {
  const [name = ""] = path.slice(basePath.length + 1).split("/");
  if (!path.startsWith(`${basePath}/`)) return false;
  // A snapshot has more between its id and the cluster's hash.
  const [id = "", ...others] = name.split(".");
  return isScratchName(name) || (ids.includes(id) && others.includes(cluster));
}

/** What a run leaves behind on the router: image paths and files of its own. */
export function findOwn(ground: Ground, basePath: string, own: OwnObjects): string[] {
  const paths = [...ground.images, ...ground.contents].filter((path) => isOwnPath(path, basePath, own));
  return [...new Set(paths)].toSorted();
}

/** How long a router may still list more disks after its boot, in milliseconds. */
const settleMs = 120_000;
const leastFreeBytes = 16n << 30n;

/** The rules that a person may set aside. */
export interface Leniency {
  /** Whether a RouterOS with holes in SSH is taken. */
  readonly acceptVulnerable: boolean;
}

/** Why a run may not use a folder, for people, with what to do; undefined when it may. */
export function refuseGround(
  ground: Ground,
  basePath: string,
  own: OwnObjects,
  { acceptVulnerable }: Leniency,
): string | undefined {
  const { router, uptimeMs, pool, folderType } = ground;
  if (!router.supported) return `RouterOS ${router.version} cannot fence: upgrade it to ${safeVersions}`;
  if (router.sshExploited && !acceptVulnerable) {
    return `RouterOS ${router.version} has holes in SSH by which routers are taken over: upgrade it to ${safeVersions}, or ` +
      "give --accept-vulnerable";
  }
  if (uptimeMs < settleMs) {
    return `the router has just booted: wait until it is up for ${settleMs / 60_000} minutes`;
  }
  const odd = whyUnreadable(ground.disks, basePath);
  if (odd !== undefined) return `the router's row of its pool cannot be read: ${odd}; see /disk print detail`;
  if (pool === undefined) return "it is on no mounted pool: name a folder on one";
  if (basePath === `/${pool.mountPoint}`) {
    return "it is the top of the pool: make a folder for the run, and name it";
  }
  if (folderType === undefined) return "it does not exist: make it on the router, for this run alone";
  if (folderType !== "directory") return `it is no folder: type=${folderType}`;
  return refusePool(ground, pool) ?? refuseUse(ground, basePath, own);
}

function refusePool({ disks }: Ground, pool: PoolDisk): string | undefined {
  for (const { slot, state, failed } of disks) {
    const { sound, activity } = parseArrayState(state);
    if (!sound || failed) return `an array is not sound: slot=${slot} state=${state}; mend it first`;
    if (activity !== "") return `an array is busy: slot=${slot} state=${state}; wait until that has ended`;
  }
  const needed = pool.sizeBytes / 10n > leastFreeBytes ? pool.sizeBytes / 10n : leastFreeBytes;
  if (pool.freeBytes >= needed) return undefined;
  return `the pool has less than 16 GiB or 10 % free: free=${pool.freeBytes} needed=${needed}`;
}

function refuseUse(
  { contents, images, around }: Ground,
  basePath: string,
  own: OwnObjects,
): string | undefined {
  const isOwn = (path: string) => isOwnPath(path, basePath, own);
  const foreign = images.filter((path) => !isOwn(path)).find((path) => {
    if (path.startsWith(`${basePath}/`)) return true;
    const folder = baseOf(path);
    return folder !== undefined && basePath.startsWith(`${folder}/`);
  });
  if (foreign !== undefined) {
    return `it holds, or is in, a base path in use: file-path=${foreign}; name a folder for this run alone`;
  }
  if (around.length > 0) {
    return `it is in a base path in use: folder=${around[0]}; name a folder for this run alone`;
  }
  const other = contents.find((path) => !isOwn(path));
  return other === undefined ? undefined : `it is not empty: file=${other}; name an empty folder`;
}

/** Images of a driver by their paths: below a folder of the volume's, beside others, or of the legacy driver. */
const imageForms: readonly RegExp[] = [
  /^(.*)\/[^/]+[.][0-9a-f]{8}\/[^/]+$/,
  /^(.*)\/[^/]+[.][0-9a-f]{8}[.]img$/,
  /^(.*)\/pvc-[0-9a-f-]{36}[.]img$/,
];

/** The base path that a driver made an image in; undefined for an image that no driver has made. */
function baseOf(path: string): string | undefined {
  return imageForms.map((form) => form.exec(path)?.[1]).find((folder) => folder !== undefined);
}

/** What the router prints of one disk for people, as in `tests/captures`. */
export async function captureDisk(line: ProbeSession, slot: string): Promise<string> {
  const { stdout } = await line.exec(command(ros`/disk/print detail where slot=${slot}`));
  return stdout.replaceAll("\r\n", "\n");
}
