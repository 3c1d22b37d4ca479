import assert from "node:assert/strict";
import { parse } from "yaml";
import { type AccessRule, clusterRules, kubevirtRules, startupTaintRules } from "../support/access_rules.ts";
import { readDetachOptions } from "../../src/cli/attach/options.ts";
import { readAuditOptions } from "../../src/cli/audit/options.ts";
import { clusterVariables } from "../../src/cli/config/cluster.ts";
import { readDescribeOptions } from "../../src/cli/describe/describe.ts";
import { readDoctorHalves } from "../../src/cli/doctor/options.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { renderings } from "../../tools/deploy/helm.ts";
import { chartTest, render, rendered, textOf } from "./chart.ts";
import { assertSound, configOf, filesOf } from "./judge.ts";
import {
  type Container,
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  readDeployFile,
  readProjectFile,
  type Rule,
  type Workload,
} from "./objects.ts";
import { alertsFile } from "./queries.ts";

function driver(kind: string, ...sets: string[]): Container {
  return driverOf(only<Workload>(rendered({ sets }), kind));
}

chartTest("the chart asks for what only its user knows, and nothing else", () => {
  const { success, complaint } = render({ values: {} });
  assert.equal(success, false);
  assert.match(complaint, /address/);
  assert.equal(render({}).success, true);
});

chartTest("the chart pins its images by digest, and refuses half a digest", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const sidecar = `example.net/csi-provisioner:v1@${digest}`;
  const sets = [`image.digest=${digest}`, "image.tag=1.2.3", `sidecars.provisioner.image=${sidecar}`];
  assert.equal(driver("DaemonSet", ...sets).image, `rds-csi:1.2.3@${digest}`);
  const { containers } = only<Workload>(rendered({ sets }), "Deployment").spec.template.spec;
  assert.ok(containers.some(({ image }) => image === sidecar));
  for (
    const set of [`image.digest=${digest.slice(0, -1)}`, `sidecars.provisioner.image=${sidecar.slice(0, -1)}`]
  ) {
    assert.equal(render({ sets: [set] }).success, false, set);
  }
});

chartTest("the chart serves a kubelet in each folder that the executable may use", () => {
  for (const path of ["/var/lib/k0s/kubelet", "/var/snap/microk8s/common/var/lib/kubelet"]) {
    const { registration, node, endpoint } = configOf(driver("DaemonSet", `kubeletPath=${path}`));
    assert.equal(registration?.kubeletPath, path);
    assert.equal(endpoint, `unix://${path}/plugins/rds.csi.srvlab.io/csi.sock`);
    assert.equal(node?.stateDirectory, `${path}/plugins/rds.csi.srvlab.io/state`);
  }
});

chartTest(
  "a command in a pod of the driver looks where the driver does, whatever its name and the kubelet's folder",
  () => {
    const sets = ["kubeletPath=/var/lib/k0s/kubelet", "driverName=other.example.com"];
    const variables = ({ env = [] }: Container) => (name: string) =>
      env.find((one) => one.name === name)?.value ?? (name === "KUBE_NODE_NAME" ? "node-1" : undefined);
    const node = driver("DaemonSet", ...sets);
    const { stateDirectory } = configOf(node).node!;
    const none = { readText: () => undefined };
    const described = readDescribeOptions([], variables(node), none).config.stateDirectory;
    const detached = readDetachOptions(["pvc-1"], variables(node)).config.stateDirectory;
    assert.deepEqual([described, detached], [stateDirectory, stateDirectory]);
    const { node: checked } = readDoctorHalves([], variables(node), none);
    assert.equal(checked?.kubeletPath, "/var/lib/k0s/kubelet");
    const inCluster = (name: string) =>
      clusterVariables.includes(name as never) ? "10.96.0.1" : variables(driver("Deployment", ...sets))(name);
    assert.equal(readAuditOptions([], inCluster).cluster?.driverName, "other.example.com");
  },
);

chartTest("the chart's values reach the driver", () => {
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
      "node.deviceLayer=multipath",
      "node.fstrimInterval=168h",
    ],
  ];
  const config = configOf(driver("Deployment", ...sets));
  assert.deepEqual([config.driverName, config.logLevel, config.logFormat], [
    "other.example.com",
    "debug",
    "text",
  ]);
  assert.deepEqual([config.metricsAddress?.port, config.endpoint], [9000, "unix:///csi/csi.sock"]);
  const { router, settings, knownNodes } = config.routers[0]!;
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
  assert.deepEqual([node?.maxVolumesPerNode, volumeMetrics, node?.deviceLayer], [9, true, "multipath"]);
  assert.deepEqual([node?.fstrimIntervalMs, configOf(driver("DaemonSet")).node?.fstrimIntervalMs], [
    168 * 3_600_000,
    0,
  ]);
});

for (const pairs of ["any", "kubevirt"]) {
  chartTest(
    `the chart lets the controller list pods where it needs them to tell migrations: ${pairs}`,
    () => {
      const set = `controller.migrationPairs=${pairs}`;
      assert.equal(configOf(driver("Deployment", set)).cluster?.migrationPairs, pairs);
      assert.deepEqual(controllerRules(set), [...clusterRules, ...pairs === "any" ? [] : kubevirtRules]);
    },
  );
}

chartTest("the chart sets how often the controller reads the health of drives", () => {
  const intervals = ["15m", "0s"].map((text) =>
    configOf(driver("Deployment", `controller.healthInterval=${text}`)).healthIntervalMs
  );
  assert.deepEqual([configOf(driver("Deployment")).healthIntervalMs, ...intervals], [900_000, 900_000, 0]);
});

/** Returns the controller's cluster-wide permissions in the chart. */
function controllerRules(...sets: string[]): readonly AccessRule[] | undefined {
  const objects = rendered({ sets }) as (KubernetesObject & {
    rules?: readonly AccessRule[];
  })[];
  const isController = ({ kind, metadata }: KubernetesObject) =>
    kind === "ClusterRole" && metadata.name === "rds-csi-controller";
  return objects.find(isController)?.rules;
}

chartTest(
  "the chart lets the controller patch nodes only where there is a taint to take off, which it tolerates",
  () => {
    const set = "controller.startupTaint=rds.csi.srvlab.io/agent-not-ready";
    assert.equal(configOf(driver("Deployment")).cluster?.startupTaint, "");
    assert.deepEqual(controllerRules(), clusterRules);
    assert.equal(configOf(driver("Deployment", set)).cluster?.startupTaint, set.split("=")[1]);
    assert.deepEqual(controllerRules(set), [...clusterRules, ...startupTaintRules]);
    for (const more of [[], ["controller.tolerations=null"]]) {
      const objects = rendered({ sets: [set, ...more] });
      const { tolerations } = only<Workload>(objects, "Deployment").spec.template.spec;
      assert.deepEqual(tolerations?.at(-1), { key: set.split("=")[1], operator: "Exists" });
    }
  },
);

chartTest("the chart leaves snapshots out where the cluster has none", () => {
  const objects = rendered({ sets: ["sidecars.snapshotter.enabled=false"] });
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
});

chartTest(
  "the chart lets one controller be evicted, which elects all the same: its node may be out of sight",
  () => {
    const kinds = (...sets: string[]) => rendered({ sets }).map(({ kind }) => kind);
    assert.ok(kinds().includes("PodDisruptionBudget"));
    assert.ok(!kinds("controller.podDisruptionBudget.enabled=false").includes("PodDisruptionBudget"));
    assert.ok(!kinds("controller.replicas=1").includes("PodDisruptionBudget"));
    assert.equal(configOf(driver("Deployment", "controller.replicas=1")).cluster?.leaderElection, true);
    for (const set of ["controller.replicas=1", "controller.spread=false"]) {
      assert.equal(render({ sets: [set] }).yaml.includes("topologySpreadConstraints"), false, set);
    }
  },
);

chartTest("the chart refuses values that would not do what they seem to", () => {
  const wrong = [
    ...[
      "kubeletpath=/k",
      "router.basePath=/a",
      "router.port=99999",
      "logLevel=loud",
      "kubeletPath=kubelet",
    ],
    ...["kubeletPath=/var/lib/kubelet/", "storageClasses[0].name=a,storageClasses[0].fsType=btrfs"],
    ...["sidecars.timeout=forever", "controller.replicas=-1", "controller.extraArgs={overcommit=1}"],
    ...["controller.replicas=6", "controller.podDisruptionBudget.maxUnavailable=0"],
    ...["controller.startupTaint=key:NoSchedule", "controller.extraArgs={--leader-election=false}"],
  ];
  for (const set of wrong) assert.equal(render({ sets: [set] }).success, false, set);
});

const monitoring = "monitoring.coreos.com/v1";

chartTest("the usual container answers the kubelet's probes where it is wanted", () => {
  const sets = ["node.sidecars.livenessProbe.enabled=true"];
  const { spec } = only<Workload>(rendered({ sets }), "DaemonSet").spec.template;
  const [driver, probe] = spec.containers as [Container, Container];
  const { endpoint } = configOf(driver);
  const hostPathOf = ({ volumeMounts }: Container, at: string) => {
    const { name } = volumeMounts.find(({ mountPath }) => mountPath === at)!;
    return spec.volumes.find((one) => one.name === name)?.hostPath?.path;
  };
  assert.ok(probe.args.includes("--csi-address=/csi/csi.sock"));
  assert.equal(`${hostPathOf(probe, "/csi")}/csi.sock`, endpoint.replace("unix://", ""));
  assert.ok(probe.args.includes("--health-port=9808"));
  assert.equal(driver.ports?.find(({ name }) => name === "healthz")?.containerPort, 9808);
  assert.equal(driver["livenessProbe"]?.httpGet.port, "healthz");
});

chartTest("the chart refuses a Kubernetes whose kubelets do not register the driver", () => {
  for (const kubeVersion of ["1.26.0", "1.28.15", "v1.28.15+k3s1"]) {
    const { success, complaint } = render({ kubeVersion });
    assert.equal(success, false, kubeVersion);
    assert.match(complaint, /kubeVersion: >=1\.29\.0-0/);
  }
  for (const kubeVersion of ["1.29.0", "v1.29.0+k3s1", "v1.29.1-eks-1"]) {
    assert.equal(render({ kubeVersion }).success, true, kubeVersion);
  }
});

chartTest(
  "what people mark pods, accounts and classes with reaches them, and cannot take pods from the chart",
  () => {
    const objects = rendered({
      sets: [
        ...["controller", "node"].flatMap((role) => [
          `${role}.podLabels.team=storage`,
          `${role}.podLabels.app\\.kubernetes\\.io/component=mine`,
          `${role}.podAnnotations.a=b`,
          `${role}.serviceAccount.annotations.c=${role}`,
        ]),
        ...["storageClasses[0].name=one", "storageClasses[0].annotations.d=e"],
      ],
    });
    for (const [kind, role] of [["Deployment", "controller"], ["DaemonSet", "node"]] as const) {
      const { labels, annotations } = only<Workload>(objects, kind).spec.template.metadata;
      assert.deepEqual([labels["team"], annotations?.["a"]], ["storage", "b"]);
      assert.equal(labels["app.kubernetes.io/component"], role);
      const account = only(objects, "ServiceAccount", `rds-csi-${role}`);
      assert.deepEqual(account.metadata.annotations, { c: role });
    }
    assert.deepEqual(only(objects, "StorageClass").metadata.annotations, { d: "e" });
  },
);

interface Monitor extends KubernetesObject {
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly endpoints: readonly { readonly port: string }[];
  };
}

interface Service extends KubernetesObject {
  readonly spec: {
    readonly selector: Readonly<Record<string, string>>;
    readonly ports: readonly { readonly name: string; readonly targetPort: string }[];
  };
}

chartTest(
  "the objects of the Prometheus operator are there only where the cluster knows them and they are wanted",
  () => {
    const kinds = (sets: readonly string[], apiVersions: readonly string[]) =>
      rendered({ sets, apiVersions }).filter(({ apiVersion }) => apiVersion === monitoring)
        .map(({ kind }) => kind);
    assert.deepEqual(kinds([], []), []);
    assert.deepEqual(kinds([], [monitoring]).toSorted(), ["PrometheusRule", "ServiceMonitor"]);
    const without = (what: string) => kinds([`monitoring.${what}.enabled=false`], [monitoring]);
    assert.deepEqual(without("serviceMonitor"), ["PrometheusRule"]);
    assert.deepEqual(without("prometheusRule"), ["ServiceMonitor"]);
    assert.deepEqual(without("service"), ["PrometheusRule"]);
  },
);

chartTest("the ServiceMonitor finds the Service, and that every pod's port of metrics", () => {
  const objects = rendered({ apiVersions: [monitoring] });
  const { spec: { selector, endpoints } } = only<Monitor>(objects, "ServiceMonitor");
  const service = only<Service>(objects, "Service");
  for (const [label, value] of Object.entries(selector.matchLabels)) {
    assert.equal(service.metadata.labels?.[label], value, label);
  }
  const { ports } = service.spec;
  assert.deepEqual(endpoints.map(({ port }) => port), ports.map(({ name }) => name));
  for (const kind of ["Deployment", "DaemonSet"]) {
    const workload = only<Workload>(objects, kind);
    for (const [label, value] of Object.entries(service.spec.selector)) {
      assert.equal(workload.spec.template.metadata.labels[label], value, `${kind} ${label}`);
    }
    assert.ok(driverOf(workload).ports?.some(({ name }) => name === ports[0]!.targetPort));
  }
});

interface NetworkPolicy extends KubernetesObject {
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly ingress: readonly object[];
    readonly egress: readonly {
      readonly ports: readonly { readonly port: number }[];
      readonly to?: object;
    }[];
  };
}

chartTest(
  "the NetworkPolicy is for the controller alone, and lets it reach the API, names and the router",
  () => {
    assert.equal(rendered().some(({ kind }) => kind === "NetworkPolicy"), false, "nobody asked for it");
    const egressWith = (...sets: string[]) => {
      const objects = rendered({ sets: ["networkPolicy.enabled=true", ...sets] });
      const { spec } = only<NetworkPolicy>(objects, "NetworkPolicy");
      const { selector } = only<Workload>(objects, "Deployment").spec;
      assert.deepEqual(spec.podSelector.matchLabels, selector.matchLabels);
      assert.deepEqual(spec.ingress, [{ ports: [{ port: "metrics", protocol: "TCP" }] }]);
      return spec.egress.map(({ ports, to }) => [ports.map(({ port }) => port), to]);
    };
    const block = (cidr: string) => [{ ipBlock: { cidr } }];
    const names = [[53, 53], undefined];
    assert.deepEqual(egressWith(), [names, [[443, 6443], undefined], [[22], block("10.0.0.1/32")]]);
    assert.deepEqual(egressWith("router.address=fd00::1")[2], [[22], block("fd00::1/128")]);
    const named = "router.address=r.example.com";
    assert.deepEqual(egressWith(named, "router.port=2222")[2], [[2222], undefined]);
    const known = "networkPolicy.routerCidrs={10.1.0.0/24}";
    assert.deepEqual(egressWith(named, known)[2], [[22], block("10.1.0.0/24")]);
    const api = ["networkPolicy.apiServer.cidrs={10.2.0.1/32}", "networkPolicy.apiServer.ports={8443}"];
    assert.deepEqual(egressWith(...api)[1], [[8443], block("10.2.0.1/32")]);
  },
);

chartTest("the VolumeSnapshotClass is the one that backup tools look for", () => {
  const { labels, annotations } = only(rendered(), "VolumeSnapshotClass").metadata;
  assert.equal(labels?.["velero.io/csi-volumesnapshot-class"], "true");
  assert.deepEqual(annotations, { "k10.kasten.io/is-snapshot-class": "true" });
});

chartTest("the dashboard is a ConfigMap where Grafana looks for it, as the file is", () => {
  const isDashboard = ({ metadata }: KubernetesObject) => metadata.labels?.["grafana_dashboard"] === "1";
  assert.equal(rendered().some(isDashboard), false);
  const sets = ["monitoring.dashboard.enabled=true", "monitoring.dashboard.namespace=grafana"];
  const { metadata, data } = rendered({ sets }).find(isDashboard) as KubernetesObject & {
    readonly data: Readonly<Record<string, string>>;
  };
  assert.equal(metadata.namespace, "grafana");
  assert.equal(data["rds-csi.json"]?.trim(), readDeployFile("chart/dashboards/rds-csi.json").trim());
});

for (const name of ["production", "full", "simulator"] as const) {
  chartTest(`the ${name} rendering is of sound objects, whose driver takes every argument`, () => {
    assertSound(parseObjects(textOf(name)));
  });
}

chartTest(
  "the full rendering has an object of every template but the one that no real router stands beside",
  () => {
    const folder = new URL("../../deploy/chart/templates", import.meta.url);
    const templates = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) =>
      name.endsWith(".yaml")
    );
    const text = textOf("full");
    const missing = templates.filter((name) => !text.includes(`# Source: rds-csi/templates/${name}\n`));
    assert.deepEqual(missing, ["simulator.yaml"]);
  },
);

/** A copy of a value without one of its leaves, for each leaf, with the leaf's path. */
function* withoutEachLeaf(value: unknown, path = ""): Generator<[path: string, rest: unknown]> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const at = `${path}/${key}`;
    const put = (rest: unknown) =>
      Array.isArray(value) ? value.with(Number(key), rest) : { ...value, [key]: rest };
    const parts = [...withoutEachLeaf(inner, at)];
    for (const [path, rest] of parts) yield [path, put(rest)];
    const { [key]: _, ...others } = value as Record<string, unknown>;
    if (parts.length === 0) yield [at, Array.isArray(value) ? value.toSpliced(Number(key), 1) : others];
  }
}

chartTest("every value of the full rendering reaches an object, or Helm asks for it", () => {
  const full = textOf("full");
  const values = parse(readProjectFile(renderings.full.values));
  const idle = withoutEachLeaf(values).filter(([, rest]) => {
    const { success, yaml } = render({ ...renderings.full, values: rest as object });
    return success && yaml === full;
  });
  assert.deepEqual(idle.map(([path]) => path).toArray(), []);
});

/** Returns the paths of all values that the schema lists. */
function valuePaths(schema: Schema, at = ""): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const path = at === "" ? name : `${at}.${name}`;
    return inner.properties === undefined ? [path] : valuePaths(inner, path);
  });
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
}

function valueAt(values: unknown, path: string): unknown {
  return path.split(".").reduce(
    (at: unknown, name) => (at as Record<string, unknown> | undefined)?.[name],
    values,
  );
}

Deno.test("every value of the schema has a default, with a comment of its own or beside its neighbours", () => {
  const schema = JSON.parse(readProjectFile("deploy/chart/values.schema.json")) as Schema;
  const values = parse(readProjectFile("deploy/chart/values.yaml"), { merge: true });
  const missing = valuePaths(schema).filter((path) => valueAt(values, path) === undefined);
  assert.deepEqual(missing, []);
});

chartTest("the alerts in the PrometheusRule are those of the file, untouched by Helm's own templates", () => {
  const rule = only<KubernetesObject & { spec: unknown }>(parseObjects(textOf("full")), "PrometheusRule");
  assert.deepEqual(rule.spec, parse(readProjectFile(`deploy/${alertsFile}`)));
});

chartTest("the full rendering's node has the usual sidecar, and its controller what was asked for", () => {
  const objects = parseObjects(textOf("full"));
  const node = only<Workload>(objects, "DaemonSet", "storage-node-a");
  assert.deepEqual(node.spec.template.spec.containers.map(({ name }) => name), [
    "driver",
    "liveness-probe",
  ]);
  const controller = only<Workload>(objects, "Deployment", "storage-controller");
  const { cluster, metricsAddress, routers } = configOf(driverOf(controller), filesOf(controller, objects));
  assert.deepEqual([cluster?.migrationPairs, metricsAddress?.port], ["kubevirt", 9000]);
  assert.deepEqual(routers.map(({ settings }) => settings.backend), ["rack-a", "rack-b"]);
});
