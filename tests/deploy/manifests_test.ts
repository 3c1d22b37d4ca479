import assert from "node:assert/strict";
import { clusterRules, namespaceRules } from "../support/access_rules.ts";
import { parseParameters } from "../../src/volume/model/parameters.ts";
import { assertSound, configOf } from "./judge.ts";
import {
  type Binding,
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  readDeployFile,
  type Rule,
  type Workload,
} from "./objects.ts";

const objects = parseObjects(readDeployFile("manifests/rds-csi.yaml"));
const controller = only<Workload>(objects, "Deployment");
const node = only<Workload>(objects, "DaemonSet");
const driverName = "rds.csi.srvlab.io";

/** The flags that the chart uses of the sidecars' pinned versions. A sidecar ends when it gets an unknown flag. */
const sidecarFlags: Readonly<Record<string, readonly string[]>> = {
  "csi-provisioner": ["worker-threads", "default-fstype", "extra-create-metadata"],
  "csi-attacher": ["worker-threads"],
  "csi-resizer": ["workers", "handle-volume-inuse-error"],
  "csi-snapshotter": ["worker-threads"],
};
const commonFlags = ["csi-address", "timeout", "retry-interval-max", "v", "kube-api-qps", "kube-api-burst"];

Deno.test("the manifests are sound objects whose driver takes every argument and may use every path", () => {
  assertSound(objects);
});

Deno.test("the manifests' namespace is the one that their objects are in", () => {
  const namespace = only(parseObjects(readDeployFile("manifests/namespace.yaml")), "Namespace");
  const used = new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []));
  assert.deepEqual([...used], [namespace.metadata.name]);
});

Deno.test("the controller runs without any privilege, and has credentials that others cannot read", () => {
  const { spec } = controller.spec.template;
  assert.deepEqual(spec.securityContext, {
    runAsNonRoot: true,
    runAsUser: 65532,
    runAsGroup: 65532,
    fsGroup: 65532,
    seccompProfile: { type: "RuntimeDefault" },
  });
  for (const { name, securityContext } of spec.containers) {
    assert.deepEqual(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    }, name);
  }
  const secret = spec.volumes.find(({ name }) => name === "credentials")?.secret;
  assert.equal(secret?.defaultMode, 0o440);
  assert.deepEqual(secret?.items.map(({ key }) => key), ["rds-private-key", "rds-host-key"]);
  assert.equal(spec.hostNetwork ?? spec.hostPID, undefined);
});

Deno.test("the node is one privileged container that registers itself, with no credentials and no token", () => {
  const { spec } = node.spec.template;
  assert.equal(spec.containers.length, 1);
  assert.deepEqual([spec.hostNetwork, spec.hostPID, spec.automountServiceAccountToken], [true, true, false]);
  assert.deepEqual(spec.volumes.filter(({ secret }) => secret !== undefined), []);
  const { securityContext, volumeMounts } = driverOf(node);
  assert.deepEqual(securityContext, { privileged: true, runAsUser: 0, readOnlyRootFilesystem: true });
  const kubelet = volumeMounts.find(({ name }) => name === "kubelet");
  assert.equal(kubelet?.mountPropagation, "Bidirectional");
  for (const { name, hostPath } of spec.volumes) {
    const mount = volumeMounts.find((one) => one.name === name);
    assert.equal(mount?.mountPath, hostPath?.path, `${name} lies elsewhere than on the host`);
  }
  const config = configOf(driverOf(node));
  assert.equal(config.registration?.socketPath, `/var/lib/kubelet/plugins/${driverName}/csi.sock`);
  assert.equal(config.driverName, driverName);
});

Deno.test("the sidecars have the versions that are current, wait for 60 s, and know every flag", () => {
  const sidecars = controller.spec.template.spec.containers.filter(({ name }) => name !== "driver");
  assert.deepEqual(sidecars.map(({ image }) => image.replace(/.*\//, "").replace(/@.*/, "")), [
    "csi-provisioner:v6.3.0",
    "csi-attacher:v4.12.0",
    "csi-resizer:v2.2.0",
    "csi-snapshotter:v8.6.0",
  ]);
  const endpoint = configOf(driverOf(controller)).endpoint.replace("unix://", "");
  for (const { name, args, volumeMounts } of sidecars) {
    assert.deepEqual(args.slice(0, 2), [`--csi-address=${endpoint}`, "--timeout=60s"], name);
    assert.deepEqual(volumeMounts, [{ name: "socket", mountPath: "/csi" }]);
    const flags = args.map((arg) => /^--([a-z-]+)/.exec(arg)?.[1] ?? arg);
    assert.deepEqual(flags.toSorted(), [...commonFlags, ...sidecarFlags[name]!].toSorted(), name);
  }
});

Deno.test("the CSIDriver reports Kubernetes what this driver does", () => {
  const { metadata, spec } = only<KubernetesObject & { spec: unknown }>(objects, "CSIDriver");
  assert.equal(metadata.name, driverName);
  assert.deepEqual(spec, {
    attachRequired: true,
    podInfoOnMount: true,
    fsGroupPolicy: "File",
    seLinuxMount: false,
    // Without a topology, a pod whose volume waits for its first consumer would find no node with enough room.
    storageCapacity: false,
    volumeLifecycleModes: ["Persistent"],
  });
});

interface RoleObject extends KubernetesObject {
  readonly rules: readonly Rule[];
}

interface StorageClass extends KubernetesObject {
  readonly provisioner: string;
  readonly allowVolumeExpansion: boolean;
  readonly parameters?: Readonly<Record<string, string>>;
}

Deno.test("the StorageClasses are this driver's, with parameters that it takes, and can be expanded", () => {
  const classes = objects.filter(({ kind }) => kind === "StorageClass") as StorageClass[];
  assert.deepEqual(
    classes.map(({ metadata, parameters }) => [metadata.name, parameters?.["csi.storage.k8s.io/fstype"]]),
    [["rds-ext4", "ext4"], ["rds-xfs", "xfs"], ["rds-block", undefined]],
  );
  const { settings } = configOf(driverOf(controller)).routers[0]!;
  for (const one of classes) {
    assert.deepEqual([one.provisioner, one.allowVolumeExpansion], [driverName, true]);
    parseParameters(one.parameters ?? {}, settings);
  }
  const snapshots = only<KubernetesObject & { driver: string }>(objects, "VolumeSnapshotClass");
  assert.equal(snapshots.driver, driverName);
});

Deno.test("the driver's accounts may do exactly what its code requests, and no account may read a Secret", () => {
  const bindings = objects.filter(({ kind }) => kind.endsWith("Binding")) as Binding[];
  const bound = bindings.map(({ kind, subjects, roleRef }) => ({
    roles: `${kind.replace("Binding", "")} ${roleRef.kind} ${roleRef.name}`,
    to: subjects.map(({ kind, name, namespace }) => `${kind} ${namespace}/${name}`).join(", "),
  }));
  const to = "ServiceAccount rds-csi/rds-csi-controller";
  const roleNames = [
    "ClusterRole rds-csi-controller",
    "ClusterRole rds-csi-sidecars",
    "Role rds-csi-controller",
  ];
  const expected = roleNames.map((name) => ({ roles: `${name.split(" ")[0]} ${name}`, to }));
  const byRoles = (a: { roles: string }, b: { roles: string }) => a.roles < b.roles ? -1 : 1;
  assert.deepEqual(
    bound.toSorted(byRoles),
    expected.toSorted(byRoles),
    "nothing is bound to the node's account",
  );
  const rulesOf = (kind: string) => only<RoleObject>(objects, kind, "rds-csi-controller").rules;
  assert.deepEqual(rulesOf("ClusterRole"), clusterRules);
  assert.deepEqual(rulesOf("Role"), namespaceRules);
  const roles = objects.filter(({ kind }) => kind === "Role" || kind === "ClusterRole") as RoleObject[];
  assert.equal(roles.length, 3);
  for (const { resources, verbs, apiGroups } of roles.flatMap(({ rules }) => rules)) {
    assert.equal(resources.includes("secrets"), false);
    assert.equal([...resources, ...verbs, ...apiGroups].includes("*"), false);
  }
});

Deno.test("two controllers run, one of them serves with the Lease, and an update removes none before its replacement is ready", () => {
  const { replicas, strategy, template } = controller.spec as Workload["spec"] & {
    readonly replicas: number;
    readonly strategy: unknown;
  };
  assert.equal(replicas, 2);
  assert.deepEqual(strategy, {
    type: "RollingUpdate",
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
  });
  const { cluster } = configOf(driverOf(controller));
  assert.equal(cluster?.leaderElection, true);
  assert.equal(cluster?.leaseIdentity, "node-1", "the variable that the pod is given");
  const { spec } = template as unknown as { readonly spec: Readonly<Record<string, unknown>> };
  const labels = controller.spec.selector;
  assert.deepEqual(spec["topologySpreadConstraints"], [
    {
      maxSkew: 1,
      topologyKey: "kubernetes.io/hostname",
      whenUnsatisfiable: "ScheduleAnyway",
      labelSelector: labels,
    },
  ]);
  // The time for running calls in `serve`, and for handing over the lead.
  assert.ok(Number(spec["terminationGracePeriodSeconds"]) >= 35);
  const budget = only<KubernetesObject & { spec: unknown }>(objects, "PodDisruptionBudget");
  assert.deepEqual(budget.spec, {
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: "AlwaysAllow",
    selector: labels,
  });
});

Deno.test("the controller works with its own cluster, whose uid distinguishes its volumes from another cluster's", () => {
  const config = configOf(driverOf(controller));
  assert.equal(config.routers[0]?.settings.cluster, "");
  assert.equal(config.cluster?.leaseNamespace, "node-1", "the variable that the pod is given");
});
