import { hostOutput } from "../../../tools/host_command.ts";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** How long a build may take without a cache and on a busy machine, in milliseconds. */
const buildMs = 60 * 60_000;

/** For static programs without traces of the build's location. */
const environment = {
  CGO_ENABLED: "0",
  GOTOOLCHAIN: "local",
  GOFLAGS: "-buildvcs=false -trimpath",
};

/** The output of `go` in the folder of a module. */
export async function goOutput(module: string, args: readonly string[]): Promise<string> {
  return (await hostOutput("go", args, { cwd: module, env: environment })).trim();
}

/** Runs a `go` build with low priority; throws with its complaints. */
export async function goBuild(module: string, args: readonly string[], signal?: AbortSignal): Promise<void> {
  const options = { cwd: module, env: environment, limitMs: buildMs, ...signal && { signal } };
  await hostOutput("nice", ["-n", "10", "go", ...args], options);
}

/**
 * The linker's flags for the module's release of Kubernetes: programs check versions that their own builds stamp into
 * them.
 */
export async function linkerFlags(module: string): Promise<string> {
  const release = await goOutput(module, ["list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"]);
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(release) ?? [];
  // Older API servers answer the second one.
  const stamps = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((stamp) => [
    `${stamp}.gitVersion=${release}`,
    `${stamp}.gitMajor=${major}`,
    `${stamp}.gitMinor=${minor}`,
  ]);
  return ["-s", "-w", ...["main.version=test", ...stamps].map((value) => `-X ${value}`)].join(" ");
}

/** The module with the versions to build. */
export const buildFolder = fileURLToPath(new URL("../build", import.meta.url));

/** The oldest Kubernetes with which the driver runs. */
export type OlderKubernetes = "1.29";

/** The module of an older Kubernetes. */
export function olderBuildFolder(release: OlderKubernetes): string {
  return fileURLToPath(new URL(`../build_${release}`, import.meta.url));
}

/** The module of programs that are built only for the upstream tests. */
export const e2eBuildFolder = fileURLToPath(new URL("../build_e2e", import.meta.url));

/** A change of how the same versions are built gets another number. */
const recipe = 1;

/** Where built tools are kept: outside the tree, because they take minutes to build and rarely change. */
function cacheFolder(): string {
  const chosen = Deno.env.get("RDS_CSI_CLUSTER_CACHE");
  if (chosen) return chosen;
  const home = Deno.env.get("XDG_CACHE_HOME") || join(Deno.env.get("HOME") ?? "/root", ".cache");
  return join(home, "rds-csi", "cluster");
}

/** The cache folder for the versions that a module requires now. */
export async function toolsFolder(module: string = buildFolder): Promise<string> {
  const hash = createHash("sha256").update(`${recipe} ${Deno.build.arch}\n`);
  for (const name of ["go.mod", "go.sum"]) hash.update(await Deno.readFile(join(module, name)));
  return join(cacheFolder(), hash.digest("hex").slice(0, 16));
}
