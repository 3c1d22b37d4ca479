import assert from "node:assert/strict";
import {
  type AccessRule,
  clusterRules,
  kubevirtRules,
  startupTaintRules,
} from "../../src/kubernetes/rules.ts";
import { clusterHash } from "../../src/volume/model/ids.ts";
import { findHelm, renderChart } from "../../tools/deploy/helm.ts";
import { assertSound, configOf } from "./judge.ts";
import {
  type Container,
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  type Rule,
  type Workload,
} from "./objects.ts";

const helm = findHelm();
const ignore = helm === undefined;
if (ignore) {
  const note = "ignored: the tests of the chart need Helm, which is not here; make helm\n";
  Deno.stderr.writeSync(new TextEncoder().encode(note));
}

const required = ["router.address=10.0.0.1"];

function render(...sets: string[]) {
  return renderChart(helm!, [], [...required, ...sets]);
}

function driver(kind: string, ...sets: string[]): Container {
  return driverOf(only<Workload>(soundObjects(...sets), kind));
}

function soundObjects(...sets: string[]): KubernetesObject[] {
  const objects = parseObjects(render(...sets).yaml);
  assertSound(objects);
  return objects;
}

Deno.test({
  name: "the chart asks for what only its user knows, and nothing else",
  ignore,
  fn() {
    for (const missing of required) {
      const rest = required.filter((one) => one !== missing);
      const { success, complaint } = renderChart(helm!, [], rest);
      assert.equal(success, false);
      assert.match(complaint, new RegExp(missing.split("=")[0]!.split(".").at(-1)!));
    }
    assert.equal(render().success, true);
  },
});

Deno.test({
  name: "the chart serves a kubelet in each folder that the executable may use",
  ignore,
  fn() {
    for (const path of ["/var/lib/k0s/kubelet", "/var/snap/microk8s/common/var/lib/kubelet"]) {
      const { registration, node, endpoint } = configOf(driver("DaemonSet", `kubeletPath=${path}`));
      assert.equal(registration?.kubeletPath, path);
      assert.equal(endpoint, `unix://${path}/plugins/rds.csi.srvlab.io/csi.sock`);
      assert.equal(node?.stateDirectory, `${path}/plugins/rds.csi.srvlab.io/state`);
    }
  },
});

Deno.test({
  name: "the chart's values reach the driver",
  ignore,
  fn() {
    const sets = [
      ...[
        "driverName=other.example.com",
        "logLevel=debug",
        "logFormat=text",
        "metricsPort=9000",
        "router.port=2222",
      ],
      ...[
        "router.secretKeys.password=word",
        "clusterId=c",
        "router.basePaths={/a/b,/c/d}",
        "router.nvmeAddress=10.1.0.1\\,10.1.0.2",
      ],
      ...[
        "controller.knownNodes={n1,n2}",
        "controller.extraArgs={--overcommit=1.5}",
        "node.maxVolumesPerNode=9",
        "node.volumeMetrics=true",
      ],
    ];
    const config = configOf(driver("Deployment", ...sets));
    assert.deepEqual([config.driverName, config.logLevel, config.logFormat], [
      "other.example.com",
      "debug",
      "text",
    ]);
    assert.deepEqual([config.metricsAddress?.port, config.endpoint], [9000, "unix:///csi/csi.sock"]);
    const { router, settings, knownNodes } = config.controller!;
    assert.deepEqual([router.port, router.keyFile, router.passwordFile], [
      2222,
      undefined,
      "/etc/rds-csi/word",
    ]);
    assert.deepEqual(settings.basePaths, ["/a/b", "/c/d"]);
    assert.deepEqual([settings.nvmeAddress, settings.overcommit], ["10.1.0.1,10.1.0.2", 1.5]);
    assert.deepEqual(knownNodes, ["n1", "n2"]);
    assert.equal(settings.cluster, clusterHash("c"));
    const { node, volumeMetrics } = configOf(driver("DaemonSet", ...sets));
    assert.deepEqual([node?.maxVolumesPerNode, volumeMetrics], [9, true]);
  },
});

for (const pairs of ["any", "kubevirt"]) {
  Deno.test({
    name: `the chart lets the controller list pods where it needs them to tell migrations: ${pairs}`,
    ignore,
    fn() {
      const set = `controller.migrationPairs=${pairs}`;
      assert.equal(configOf(driver("Deployment", set)).cluster?.migrationPairs, pairs);
      assert.deepEqual(controllerRules(set), [...clusterRules, ...pairs === "any" ? [] : kubevirtRules]);
    },
  });
}

/** What the chart lets the controller do in the whole cluster. */
function controllerRules(...sets: string[]): readonly AccessRule[] | undefined {
  const objects = parseObjects(render(...sets).yaml) as (KubernetesObject & {
    rules?: readonly AccessRule[];
  })[];
  const isController = ({ kind, metadata }: KubernetesObject) =>
    kind === "ClusterRole" && metadata.name === "rds-csi-controller";
  return objects.find(isController)?.rules;
}

Deno.test({
  name:
    "the chart lets the controller patch nodes only where there is a taint to take off, which it tolerates",
  ignore,
  fn() {
    const set = "controller.startupTaint=rds.csi.srvlab.io/agent-not-ready";
    assert.equal(configOf(driver("Deployment")).cluster?.startupTaint, "");
    assert.deepEqual(controllerRules(), clusterRules);
    assert.equal(configOf(driver("Deployment", set)).cluster?.startupTaint, set.split("=")[1]);
    assert.deepEqual(controllerRules(set), [...clusterRules, ...startupTaintRules]);
    for (const more of [[], ["controller.tolerations=null"]]) {
      const objects = parseObjects(render(set, ...more).yaml);
      assertSound(objects);
      const { tolerations } = only<Workload>(objects, "Deployment").spec.template.spec;
      assert.deepEqual(tolerations?.at(-1), { key: set.split("=")[1], operator: "Exists" });
    }
  },
});

Deno.test({
  name: "the chart leaves snapshots out where the cluster has none",
  ignore,
  fn() {
    const objects = parseObjects(render("sidecars.snapshotter.enabled=false").yaml);
    assertSound(objects);
    assert.equal(objects.some(({ kind }) => kind === "VolumeSnapshotClass"), false);
    const { containers } = only<Workload>(objects, "Deployment").spec.template.spec;
    assert.equal(containers.some(({ name }) => name === "csi-snapshotter"), false);
    const sidecars = only<KubernetesObject & { rules: readonly Rule[] }>(
      objects,
      "ClusterRole",
      "rds-csi-sidecars",
    );
    const changed = sidecars.rules.filter(({ verbs }) => verbs.includes("patch") || verbs.includes("create"));
    const snapshots = changed.flatMap(({ apiGroups }) => apiGroups).filter((group) => /snapshot/.test(group));
    assert.deepEqual(snapshots, [], "the provisioner only looks at them, and protects them by a finalizer");
  },
});

Deno.test({
  name: "the chart lets one controller be evicted, which elects all the same: its node may be out of sight",
  ignore,
  fn() {
    const kinds = (...sets: string[]) => parseObjects(render(...sets).yaml).map(({ kind }) => kind);
    assert.ok(kinds().includes("PodDisruptionBudget"));
    assert.ok(!kinds("controller.podDisruptionBudget.enabled=false").includes("PodDisruptionBudget"));
    assert.ok(!kinds("controller.replicas=1").includes("PodDisruptionBudget"));
    assert.equal(configOf(driver("Deployment", "controller.replicas=1")).cluster?.leaderElection, true);
    for (const set of ["controller.replicas=1", "controller.spread=false"]) {
      assert.equal(render(set).yaml.includes("topologySpreadConstraints"), false, set);
    }
  },
});

Deno.test({
  name: "the chart refuses values that would not do what they seem to",
  ignore,
  fn() {
    const wrong = [
      ...[
        "kubeletpath=/k",
        "router.basePath=/a",
        "router.port=99999",
        "logLevel=loud",
        "kubeletPath=kubelet",
      ],
      ...["kubeletPath=/var/lib/kubelet/", "storageClasses[0].name=a,storageClasses[0].fsType=btrfs"],
      ...["sidecars.timeout=forever", "controller.replicas=0", "controller.extraArgs={overcommit=1}"],
      ...["controller.replicas=6", "controller.podDisruptionBudget.maxUnavailable=0"],
      ...["controller.startupTaint=key:NoSchedule"],
    ];
    for (const set of wrong) assert.equal(render(set).success, false, set);
  },
});
