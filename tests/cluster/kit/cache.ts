import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The module that says which versions are built. */
export const buildFolder = fileURLToPath(new URL("../build", import.meta.url));

/** The module of what is built only where the upstream tests run. */
export const e2eBuildFolder = fileURLToPath(new URL("../build_e2e", import.meta.url));

/** What is built in another way under the same versions gets another number. */
const recipe = 1;

/** Where built tools are kept: outside the tree, since they take minutes to build and hardly ever change. */
export function cacheFolder(): string {
  const chosen = Deno.env.get("RDS_CSI_CLUSTER_CACHE");
  if (chosen) return chosen;
  const home = Deno.env.get("XDG_CACHE_HOME") || join(Deno.env.get("HOME") ?? "/root", ".cache");
  return join(home, "rds-csi", "cluster");
}

/** The folder of the cache for the versions that a module wants now. */
export async function toolsFolder(module: string = buildFolder): Promise<string> {
  const hash = createHash("sha256").update(`${recipe} ${Deno.build.arch}\n`);
  for (const name of ["go.mod", "go.sum"]) hash.update(await Deno.readFile(join(module, name)));
  return join(cacheFolder(), hash.digest("hex").slice(0, 16));
}
