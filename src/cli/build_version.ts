/** The version that GetPluginInfo, `rds-csi version` and the image labels tell. */
export const version = "0.1.0";

/** Where a build leaves the commit that it was made from: see tools/build.ts. */
const commitName = "RDS_CSI_COMMIT";

/** The commit that the executable was built from, with `-dirty` when there were changes; `unknown` for sources. */
export function commit(): string {
  const known: unknown = Reflect.get(globalThis, commitName);
  return typeof known === "string" ? known : "unknown";
}
