/** One set of values that the chart is rendered with, and where the outcome is kept. Paths are of the project. */
export interface Rendering {
  readonly values: string;
  readonly target: string;
  /** What the cluster knows beside Kubernetes itself. */
  readonly apiVersions: readonly string[];
}

/** Every rendering that is kept in step with the chart. */
export const renderings = {
  /** Nothing but what only its user knows. */
  default: {
    values: "deploy/manifests/values.yaml",
    target: "deploy/manifests/rds-csi.yaml",
    apiVersions: [],
  },
  /** As an operator would install it, in a cluster with the Prometheus operator. */
  production: {
    values: "deploy/examples/production.yaml",
    target: "tests/deploy/rendered/production.yaml",
    apiVersions: ["monitoring.coreos.com/v1"],
  },
  /** Everything that can be switched on, and every value that is something else where it can be. */
  full: {
    values: "tests/deploy/full.values.yaml",
    target: "tests/deploy/rendered/full.yaml",
    apiVersions: ["monitoring.coreos.com/v1"],
  },
} as const satisfies Readonly<Record<string, Rendering>>;
