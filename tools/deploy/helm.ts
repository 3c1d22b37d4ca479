import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The Kubernetes that is rendered for: Helm asks no cluster. */
const KUBE_VERSION = "1.33.0";

/** Path of a Helm that can render the chart; undefined when there is none. */
export function findHelm(): string | undefined {
  const { stdout } = new Deno.Command(join(ROOT, "tools/get-helm.sh"), { stdin: "null" }).outputSync();
  return new TextDecoder().decode(stdout).trim() || undefined;
}

/** What rendering came to. */
export interface Rendered {
  readonly success: boolean;
  readonly yaml: string;
  readonly complaint: string;
}

/**
 * The objects of deploy/chart as YAML, in the namespace and under the name that the manifests have.
 *
 * @param values files of values; a later one wins
 * @param sets single values, as of Helm's --set
 * @param apiVersions groups and versions that the cluster knows beside those of Kubernetes itself
 */
export function renderChart(
  helm: string,
  values: readonly string[],
  sets: readonly string[] = [],
  apiVersions: readonly string[] = [],
): Rendered {
  const { success, stdout, stderr } = new Deno.Command(helm, {
    args: [
      ...["template", "rds-csi", "deploy/chart", "--namespace", "rds-csi", "--kube-version", KUBE_VERSION],
      ...values.flatMap((file) => ["--values", file]),
      ...sets.flatMap((set) => ["--set", set]),
      ...apiVersions.flatMap((each) => ["--api-versions", each]),
    ],
    cwd: ROOT,
    stdin: "null",
    // Nothing of whoever runs it: no plugins, no repositories.
    env: { HELM_PLUGINS: "/nonexistent", HELM_CONFIG_HOME: "/nonexistent" },
  }).outputSync();
  const decoder = new TextDecoder();
  return { success, yaml: decoder.decode(stdout), complaint: decoder.decode(stderr) };
}

/** One set of values that the chart is rendered with as a whole. Paths are of the project. */
export interface Rendering {
  readonly values: string;
  /** What the cluster knows beside Kubernetes itself. */
  readonly apiVersions: readonly string[];
}

/** The renderings that a real API server and the tests look at. */
export const renderings = {
  /** Nothing but what only its user knows. */
  default: { values: "deploy/manifests/values.yaml", apiVersions: [] },
  /** As an operator would install it, in a cluster with the Prometheus operator. */
  production: { values: "deploy/examples/production.yaml", apiVersions: ["monitoring.coreos.com/v1"] },
  /** Everything that can be switched on, and every value that is something else where it can be. */
  full: { values: "tests/deploy/full.values.yaml", apiVersions: ["monitoring.coreos.com/v1"] },
} as const satisfies Readonly<Record<string, Rendering>>;

/**
 * The objects of a rendering as YAML.
 *
 * @throws {Error} when Helm refuses the values
 */
export function renderingText(helm: string, { values, apiVersions }: Rendering): string {
  const { success, yaml, complaint } = renderChart(helm, [values], [], apiVersions);
  if (!success) throw new Error(complaint.trimEnd());
  return yaml;
}
