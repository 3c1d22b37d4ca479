import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The version of Kubernetes to render for: Helm asks no cluster. */
const KUBE_VERSION = "1.33.0";

/** The kinds of snapshots, which most clusters know. */
export const snapshotApi = "snapshot.storage.k8s.io/v1";

/** Path of a Helm that can render the chart; undefined when there is none. */
export function findHelm(): string | undefined {
  return findTool([]);
}

function findTool(args: string[]): string | undefined {
  const { stdout } = new Deno.Command(join(ROOT, "tools/get-helm.sh"), { args, stdin: "null" }).outputSync();
  return new TextDecoder().decode(stdout).trim() || undefined;
}

/**
 * The chart's README, which helm-docs makes from the comments in values.yaml; undefined without helm-docs.
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
  // helm-docs skips a chart that it cannot read, and exits with 0.
  if (!success || text === "") throw new Error(new TextDecoder().decode(stderr).trimEnd());
  return text;
}

/** The result of rendering. */
export interface Rendered {
  readonly success: boolean;
  readonly yaml: string;
  readonly complaint: string;
}

/**
 * The objects of deploy/chart as YAML, with the namespace and the name of the manifests.
 *
 * @param values files of values; a later one wins
 * @param sets single values, as for Helm's --set
 * @param apiVersions groups and versions of the cluster besides those of Kubernetes itself
 * @param only a single template to render, as for Helm's --show-only; by default all but the pod of `helm test`
 * @param kubeVersion the cluster's version of Kubernetes
 */
export function renderChart(
  helm: string,
  values: readonly string[],
  sets: readonly string[] = [],
  apiVersions: readonly string[] = [snapshotApi],
  only?: string,
  kubeVersion = KUBE_VERSION,
): Rendered {
  const { success, stdout, stderr } = new Deno.Command(helm, {
    args: [
      ...["template", "rds-csi", "deploy/chart", "--namespace", "rds-csi", "--kube-version", kubeVersion],
      ...only === undefined ? ["--skip-tests"] : ["--show-only", only],
      ...values.flatMap((file) => ["--values", file]),
      ...sets.flatMap((set) => ["--set", set]),
      ...apiVersions.flatMap((each) => ["--api-versions", each]),
    ],
    cwd: ROOT,
    stdin: "null",
    // Nothing of the user's environment: no plugins, no repositories.
    env: { HELM_PLUGINS: "/nonexistent", HELM_CONFIG_HOME: "/nonexistent" },
  }).outputSync();
  const decoder = new TextDecoder();
  return { success, yaml: decoder.decode(stdout), complaint: decoder.decode(stderr) };
}

/** A set of values for rendering the whole chart. Paths are relative to the project. */
export interface Rendering {
  readonly values: string;
  /** API groups of the cluster besides Kubernetes itself. */
  readonly apiVersions: readonly string[];
}

/** The renderings that tests and a real API server check. */
export const renderings = {
  /** Only what the user has to set. */
  default: { values: "deploy/manifests/values.yaml", apiVersions: [snapshotApi] },
  /** A typical installation, in a cluster with the Prometheus operator. */
  production: {
    values: "deploy/examples/production.yaml",
    apiVersions: [snapshotApi, "monitoring.coreos.com/v1"],
  },
  /** Everything that can be switched on, and every value that can differ from its default. */
  full: { values: "tests/deploy/full.values.yaml", apiVersions: [snapshotApi, "monitoring.coreos.com/v1"] },
  /** With a simulated router as a pod. */
  simulator: { values: "deploy/examples/try-without-a-router.yaml", apiVersions: [snapshotApi] },
  /** With the second driver, for shared directories. */
  directories: { values: "deploy/examples/shared-directories.yaml", apiVersions: [snapshotApi] },
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
