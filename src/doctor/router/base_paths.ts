import { parentFolder, poolOf } from "../../volume/model/ids.ts";
import type { StoredFile } from "../../volume/ports/ports.ts";
import { fileName, namedFilesQuery } from "../../routeros/store/queries.ts";
import { parseFiles } from "../../routeros/store/rows.ts";
import type { RouterCheck } from "./check.ts";
import { type Finding, fine, problem } from "../../volume/model/finding.ts";
import { parsePoolDisks, type PoolDisk, poolDisksQuery } from "./pools.ts";

const check = "base-path";

/** Whether volumes have a place in each folder that they may lie in. */
export const basePathsCheck: RouterCheck = {
  name: check,
  essential: true,
  async run(router, { basePaths }) {
    const pools = parsePoolDisks(await router.read(check, poolDisksQuery));
    const findings: Finding[] = [];
    for (const path of basePaths) {
      const paths = [path, parentFolder(path)];
      const files = parseFiles(
        await router.read(check, namedFilesQuery(paths)),
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
      check,
      `${path} is on no mounted pool; mounted is ${mounted.join(", ") || "none"}`,
      mounted.length === 0 ? "/disk/print detail" : `--base-path ${mounted[0]}/metal-csi`,
    );
  }
  const entry = files.find((file) => file.path === path);
  if (entry === undefined) return judgeMissing(path, files);
  if (entry.directory) return fine(check, `${path} is there, on the pool ${pool.slot}`);
  return problem(check, `${path} is a file, not a folder`, `--base-path ${path}.d`);
}

/** The driver makes the last folder of a base path with the first volume; the one above it has to be there. */
function judgeMissing(path: string, files: readonly StoredFile[]): Finding {
  const parent = parentFolder(path);
  // The mount point of a pool is listed as a disk, on some routers not at all.
  const parentIsThere = parent === `/${poolOf(path)}` || files.some((file) => file.path === parent);
  if (path === `/${poolOf(path)}` || parentIsThere) {
    return fine(check, `${path} is not there yet; the first volume makes it`);
  }
  return problem(
    check,
    `${path} is not there, and only its last folder would be made`,
    `/file/add type=directory name="${fileName(parent)}"`,
  );
}
