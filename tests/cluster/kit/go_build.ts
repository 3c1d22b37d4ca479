import { hostOutput } from "../../guest/kit/host_command.ts";

/** Longest that building may take where nothing is cached and others work too, in milliseconds. */
const buildMs = 60 * 60_000;

/** Static programs, and nothing in them of where they were built. */
const environment = {
  CGO_ENABLED: "0",
  GOTOOLCHAIN: "local",
  GOFLAGS: "-buildvcs=false -trimpath",
};

/** What `go` prints when it runs in the folder of a module. */
export async function goOutput(module: string, args: readonly string[]): Promise<string> {
  return (await hostOutput("go", args, { cwd: module, env: environment })).trim();
}

/** Runs a `go` that builds, with little priority; throws with what it complained of. */
export async function goBuild(module: string, args: readonly string[], signal?: AbortSignal): Promise<void> {
  const limits = [AbortSignal.timeout(buildMs), ...signal === undefined ? [] : [signal]];
  const { success, stderr } = await new Deno.Command("nice", {
    args: ["-n", "10", "go", ...args],
    cwd: module,
    env: environment,
    stdin: "null",
    signal: AbortSignal.any(limits),
  }).output();
  if (!success) throw new Error(`Cannot build the cluster's tools: ${new TextDecoder().decode(stderr)}`);
}

/** What a linker is told for the module's release of Kubernetes: programs ask for versions that their own builds stamp into them. */
export async function linkerFlags(module: string): Promise<string> {
  const release = await goOutput(module, ["list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"]);
  const [, major, minor] = /^v(\d+)\.(\d+)\./.exec(release) ?? [];
  const stamp = "k8s.io/component-base/version";
  const values = { "main.version": "test", [`${stamp}.gitVersion`]: release };
  const numbers = { [`${stamp}.gitMajor`]: major, [`${stamp}.gitMinor`]: minor };
  return [
    "-s",
    "-w",
    ...Object.entries({ ...values, ...numbers }).map(([key, value]) => `-X ${key}=${value}`),
  ]
    .join(" ");
}
