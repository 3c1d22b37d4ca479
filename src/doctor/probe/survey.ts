import type { RouterProfile, Vocabulary } from "../../router_profile/profile.ts";
import { poolOf } from "../../volume/model/ids.ts";
import { VolumeError } from "../../volume/errors.ts";
import { parsePoolDisks, type PoolDisk, poolDisksQuery } from "../router/pools.ts";
import { parseRow } from "../../routeros/console/json.ts";
import { resourceQuery } from "../../routeros/store/queries.ts";
import { isAtLeast, parseRouterInfo } from "../../routeros/console/router_info.ts";
import type { Line } from "./session.ts";
import { findFile } from "./scratch.ts";

/** The place in which a probe may make things. */
export interface Site {
  /** As the router spells it. */
  readonly version: string;
  /** Version and board: what a profile is called. */
  readonly name: string;
  readonly pool: PoolDisk;
}

/**
 * Looks at the folder that a person has named, before anything is made in it.
 *
 * @throws {VolumeError} precondition when it is not there, is no folder, or is on no mounted pool
 */
export async function surveySite(line: Line, basePath: string): Promise<Site> {
  const { version, board } = parseRouterInfo(parseRow(await read(line, resourceQuery), "system resource"));
  const pools = parsePoolDisks(await read(line, poolDisksQuery));
  const pool = pools.find((disk) => disk.mounted && disk.mountPoint === poolOf(basePath));
  if (pool === undefined) throw refuse(basePath, "it is on no mounted pool");
  const folder = await findFile(line, basePath);
  const isThere = basePath === `/${pool.mountPoint}` || folder !== undefined;
  if (!isThere) throw refuse(basePath, "it does not exist");
  const type = folder?.["type"] ?? "disk";
  if (type !== "directory" && type !== "disk") throw refuse(basePath, "it is no folder");
  return { version, name: `${board} ${version}`.trim(), pool };
}

/** What of a profile does not come from questions. */
export function profileOf(
  { version, name, pool }: Site,
  vocabulary: Vocabulary,
  legend: RouterProfile["legend"],
): Omit<RouterProfile, "answers"> {
  const poolFilesystem = pool.filesystem === "btrfs" ? "btrfs" : "xfs";
  return { name, version, vocabulary, legend, poolFilesystem };
}

/** How a version prints legends, where it cannot be seen. */
export function usualLegend(version: string): RouterProfile["legend"] {
  return isAtLeast(version, 7, 22) ? "present" : "all";
}

async function read(line: Line, query: typeof resourceQuery): Promise<string> {
  const { done, frames, words } = await line.run([], [query]);
  if (done) return frames[0]!;
  throw new VolumeError("unavailable", `Cannot read from the router as it refused: ${words}`);
}

function refuse(basePath: string, reason: string): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot probe the router in that folder as ${reason}: base-path=${basePath}; ` +
      "name a folder on the router in which scratch volumes may be made and removed",
  );
}
