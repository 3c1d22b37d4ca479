/** The version in GetPluginInfo, `rds-csi version` and the image labels. */
export const version = "0.1.0";

/** The global in which a build leaves its commit: see tools/build.ts. */
const commitName = "RDS_CSI_COMMIT";

/** The commit from which the executable was built, with `-dirty` when there were changes; `unknown` for sources. */
export function commit(): string {
  const known: unknown = Reflect.get(globalThis, commitName);
  return typeof known === "string" ? known : "unknown";
}
