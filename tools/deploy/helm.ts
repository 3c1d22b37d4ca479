import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The Kubernetes that is rendered for: Helm asks no cluster. */
const KUBE_VERSION = "1.33.0";

/** Path of a Helm that can render the chart; undefined when there is none. */
export function findHelm(): string | undefined {
  return findTool([]);
}

function findTool(args: string[]): string | undefined {
  const { stdout } = new Deno.Command(join(ROOT, "tools/get-helm.sh"), { args, stdin: "null" }).outputSync();
  return new TextDecoder().decode(stdout).trim() || undefined;
}

/**
 * The chart's README, which helm-docs makes of the comments in values.yaml; undefined when helm-docs is not here.
 *
 * @throws {Error} when helm-docs fails
 */
export function chartReadme(): string | undefined {
  const helmDocs = findTool(["--docs"]);
  if (helmDocs === undefined) return undefined;
  const { success, stdout, stderr } = new Deno.Command(helmDocs, {
    args: ["--chart-search-root=deploy", "--dry-run"],
    cwd: ROOT,
    stdin: "null",
  }).outputSync();
  const text = new TextDecoder().decode(stdout);
  // It passes over a chart that it cannot read, and ends well.
  if (!success || text === "") throw new Error(new TextDecoder().decode(stderr).trimEnd());
  return text;
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
 * @param only the one template to render, as of Helm's --show-only; by default all but the pod of `helm test`
 */
export function renderChart(
  helm: string,
  values: readonly string[],
  sets: readonly string[] = [],
  apiVersions: readonly string[] = [],
  only?: string,
): Rendered {
  const { success, stdout, stderr } = new Deno.Command(helm, {
    args: [
      ...["template", "rds-csi", "deploy/chart", "--namespace", "rds-csi", "--kube-version", KUBE_VERSION],
      ...only === undefined ? ["--skip-tests"] : ["--show-only", only],
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
  /** With a simulated router as a pod. */
  simulator: { values: "deploy/examples/try-without-a-router.yaml", apiVersions: [] },
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
