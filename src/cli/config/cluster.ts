import type { ReconcileLoopSettings } from "../../controller/reconcile/loop.ts";
import type { FlagTable, FlagValues } from "../flags.ts";

/** Variables with the address of the API server, which are set in every pod of a cluster. */
export const clusterVariables = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"] as const;

/** Where a pod's service account is mounted. */
export const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Flags of a controller with a cluster. */
export const clusterFlags: FlagTable = {
  "kubernetes": {
    form: "text",
    choices: ["auto", "on", "off"],
    fallback: "auto",
    help: "Whether to use a cluster's API server; auto uses it in a pod, or with --kubeconfig.",
  },
  "kubeconfig": {
    form: "text",
    help: "Kubeconfig file with the API server and the credentials; a pod needs none.",
  },
  "reconcile": {
    form: "text",
    choices: ["on", "dry-run", "off"],
    fallback: "on",
    help:
      "Whether to turn lost exports of volumes in use on again, and to withdraw exports that no VolumeAttachment wants after --reconcile-grace; dry-run only logs the changes. An export whose record is older than the cluster's is always withdrawn at once.",
  },
  "reconcile-interval": {
    form: "duration",
    least: 5_000,
    most: 3_600_000,
    fallback: "60s",
    help: "How often to compare the router with the cluster.",
  },
  "reconcile-grace": {
    form: "duration",
    least: 60_000,
    most: 86_400_000,
    fallback: "10m",
    help: "How long no VolumeAttachment has to want an export before the driver withdraws it.",
  },
  "names-on-router": {
    form: "switch",
    fallback: "true",
    help:
      "Keep an empty folder on the router for each volume and snapshot, named by namespace, claim and class. rds-csi adopt rebuilds claims of a lost cluster from them; false removes them.",
  },
  "migration-pairs": {
    form: "text",
    choices: ["any", "kubevirt"],
    fallback: "any",
    help:
      "Which two nodes may share a block volume for a migration: any, also a lost node and the one that takes its pods over, so that both may write; or only those of the two running pods of one KubeVirt virtual machine: the controller needs to list pods.",
  },
  "startup-taint": {
    form: "text",
    help:
      "Key of a taint to remove from a node once this driver has registered there, so that no pod starts before it. Add the taint where nodes are made; the controller needs to patch nodes.",
  },
  "lease-namespace": {
    form: "text",
    env: ["POD_NAMESPACE"],
    help: "Namespace of the Lease that elects one of several controllers; default is the pod's.",
  },
  "leader-election": {
    form: "switch",
    help:
      "Serve only while this controller holds the Lease, so that others may run and wait. Without it only one controller may run.",
  },
  "lease-identity": {
    form: "text",
    fallback: "rds-csi",
    env: ["POD_NAME"],
    help: "Name of this controller in the Lease, for people.",
  },
};

/** The settings of a controller for its cluster. */
export interface ClusterConfig {
  readonly address:
    | { readonly kubeconfig: string }
    | { readonly host: string; readonly port: string; readonly folder: string };
  /** Empty for the namespace in which this driver runs. */
  readonly leaseNamespace: string;
  readonly rounds: ReconcileLoopSettings;
  readonly migrationPairs: "any" | "kubevirt";
  /** Key of the taint with which nodes are created; empty where there is none. */
  readonly startupTaint: string;
  /** Whether it serves only while it holds the Lease. */
  readonly leaderElection: boolean;
  /** The prefix of its name in the Lease. */
  readonly leaseIdentity: string;
}

/**
 * The address of a command's API server; undefined when there is none. The command has the first two of these flags.
 */
export function readClusterAddress(
  flags: FlagValues,
  env: (name: string) => string | undefined,
): ClusterConfig["address"] | undefined {
  const use = flags.text("kubernetes");
  if (use === "off") return undefined;
  const kubeconfig = flags.text("kubeconfig");
  if (kubeconfig !== "") return { kubeconfig };
  const [host, port] = clusterVariables.map((name) => env(name) ?? "");
  if (host && port) return { host, port, folder: serviceAccountFolder };
  if (use === "on") {
    flags.problem("kubernetes", use, "auto or off outside of a pod, unless --kubeconfig is given");
  }
  return undefined;
}

/** The settings of a controller for its cluster; undefined when there is none. */
export function readCluster(
  flags: FlagValues,
  env: (name: string) => string | undefined,
): ClusterConfig | undefined {
  const use = flags.text("kubernetes");
  if (use === "off") return noCluster(flags);
  const leaseNamespace = flags.text("lease-namespace");
  if (leaseNamespace !== "" && !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(leaseNamespace)) {
    flags.problem("lease-namespace", leaseNamespace, "the name of a namespace");
  }
  const rounds = {
    intervalMs: flags.durationMs("reconcile-interval"),
    reconcile: {
      mode: flags.text("reconcile") as ReconcileLoopSettings["reconcile"]["mode"],
      graceMs: flags.durationMs("reconcile-grace"),
    },
    namesOnRouter: flags.switch("names-on-router"),
  };
  const migrationPairs = flags.text("migration-pairs") as ClusterConfig["migrationPairs"];
  const startupTaint = readStartupTaint(flags);
  const leaderElection = flags.switch("leader-election");
  const leaseIdentity = flags.text("lease-identity");
  const settings = {
    leaseNamespace,
    rounds,
    migrationPairs,
    startupTaint,
    leaderElection,
    leaseIdentity,
  };
  const address = readClusterAddress(flags, env);
  return address === undefined ? noCluster(flags) : { address, ...settings };
}

/** Kubernetes' own taints say that a node is not fit, and must not be removed by this driver. */
function readStartupTaint(flags: FlagValues): string {
  const key = flags.text("startup-taint");
  const form =
    /^(?:([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)\/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
  const match = form.exec(key);
  if (key !== "" && match === null) {
    flags.problem("startup-taint", key, "the key of a taint, without value and effect");
  }
  if (/(?:^|\.)(?:kubernetes|k8s)\.io$/.test(match?.[1] ?? "")) {
    flags.problem("startup-taint", key, "a key that is not one of Kubernetes itself");
  }
  return key;
}

/** Adds a problem for each given flag that needs a cluster. */
function noCluster(flags: FlagValues): undefined {
  const pairs = flags.text("migration-pairs");
  if (pairs === "kubevirt") flags.problem("migration-pairs", pairs, "any outside of a cluster");
  const taint = flags.text("startup-taint");
  if (taint !== "") flags.problem("startup-taint", taint, "it in a cluster");
  if (flags.switch("leader-election")) {
    flags.addProblems(["--leader-election goes with a cluster, by which a leader is elected"]);
  }
}
