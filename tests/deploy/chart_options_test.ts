import assert from "node:assert/strict";
import { findHelm, renderChart } from "../../tools/deploy/helm.ts";
import { assertSound, configOf } from "./judge.ts";
import {
  type Container,
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  readDeployFile,
  type Workload,
} from "./objects.ts";

const helm = findHelm();
const ignore = helm === undefined;
if (ignore) {
  const note = "ignored: the tests of the chart's options need Helm, which is not here; make helm\n";
  Deno.stderr.writeSync(new TextEncoder().encode(note));
}

/** The objects that are rendered, where the cluster knows these groups beside its own. */
function rendered(sets: readonly string[], apiVersions: readonly string[] = []): KubernetesObject[] {
  const all = ["router.address=10.0.0.1", ...sets];
  const { success, yaml, complaint } = renderChart(helm!, [], all, apiVersions);
  assert.ok(success, complaint);
  const objects = parseObjects(yaml);
  assertSound(objects);
  return objects;
}

const monitoring = "monitoring.coreos.com/v1";

Deno.test({
  name: "the node registers by itself, or by the usual container, and never by both",
  ignore,
  fn() {
    const sets = ["node.sidecars.registrar.enabled=true", "node.sidecars.livenessProbe.enabled=true"];
    const { spec } = only<Workload>(rendered(sets), "DaemonSet").spec.template;
    const [driver, registrar, probe] = spec.containers as [Container, Container, Container];
    const config = configOf(driver);
    assert.equal(config.registration, undefined);
    const hostPathOf = ({ volumeMounts }: Container, at: string) => {
      const { name } = volumeMounts.find(({ mountPath }) => mountPath === at)!;
      return spec.volumes.find((one) => one.name === name)?.hostPath?.path;
    };
    const socket = config.endpoint.replace("unix://", "");
    assert.ok(registrar.args.includes(`--kubelet-registration-path=${socket}`));
    assert.equal(hostPathOf(registrar, "/registration"), "/var/lib/kubelet/plugins_registry");
    for (const sidecar of [registrar, probe]) {
      assert.ok(sidecar.args.includes("--csi-address=/csi/csi.sock"));
      assert.equal(`${hostPathOf(sidecar, "/csi")}/csi.sock`, socket);
    }
    assert.ok(probe.args.includes("--health-port=9808"));
    assert.equal(driver.ports?.find(({ name }) => name === "healthz")?.containerPort, 9808);
    assert.equal(driver["livenessProbe"]?.httpGet.port, "healthz");
  },
});

Deno.test({
  name: "what people mark pods, accounts and classes with reaches them, and cannot take pods from the chart",
  ignore,
  fn() {
    const objects = rendered([
      ...["controller", "node"].flatMap((role) => [
        `${role}.podLabels.team=storage`,
        `${role}.podLabels.app\\.kubernetes\\.io/component=mine`,
        `${role}.podAnnotations.a=b`,
        `${role}.serviceAccount.annotations.c=${role}`,
      ]),
      ...["storageClasses[0].name=one", "storageClasses[0].annotations.d=e"],
    ]);
    for (const [kind, role] of [["Deployment", "controller"], ["DaemonSet", "node"]] as const) {
      const { labels, annotations } = only<Workload>(objects, kind).spec.template.metadata;
      assert.deepEqual([labels["team"], annotations?.["a"]], ["storage", "b"]);
      assert.equal(labels["app.kubernetes.io/component"], role);
      const account = only(objects, "ServiceAccount", `rds-csi-${role}`);
      assert.deepEqual(account.metadata.annotations, { c: role });
    }
    assert.deepEqual(only(objects, "StorageClass").metadata.annotations, { d: "e" });
  },
});

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

Deno.test({
  name:
    "the objects of the Prometheus operator are there only where the cluster knows them and they are wanted",
  ignore,
  fn() {
    const kinds = (sets: readonly string[], apiVersions: readonly string[]) =>
      rendered(sets, apiVersions).filter(({ apiVersion }) => apiVersion === monitoring)
        .map(({ kind }) => kind);
    assert.deepEqual(kinds([], []), []);
    assert.deepEqual(kinds([], [monitoring]).toSorted(), ["PrometheusRule", "ServiceMonitor"]);
    const without = (what: string) => kinds([`monitoring.${what}.enabled=false`], [monitoring]);
    assert.deepEqual(without("serviceMonitor"), ["PrometheusRule"]);
    assert.deepEqual(without("prometheusRule"), ["ServiceMonitor"]);
    assert.deepEqual(without("service"), ["PrometheusRule"]);
  },
});

Deno.test({
  name: "the ServiceMonitor finds the Service, and that every pod's port of metrics",
  ignore,
  fn() {
    const objects = rendered([], [monitoring]);
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
  },
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

Deno.test({
  name: "the NetworkPolicy is for the controller alone, and lets it reach the API, names and the router",
  ignore,
  fn() {
    assert.equal(rendered([]).some(({ kind }) => kind === "NetworkPolicy"), false, "nobody asked for it");
    const egressWith = (...sets: string[]) => {
      const objects = rendered(["networkPolicy.enabled=true", ...sets]);
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
});

Deno.test({
  name: "the VolumeSnapshotClass is the one that backup tools look for",
  ignore,
  fn() {
    const { labels, annotations } = only(rendered([]), "VolumeSnapshotClass").metadata;
    assert.equal(labels?.["velero.io/csi-volumesnapshot-class"], "true");
    assert.deepEqual(annotations, { "k10.kasten.io/is-snapshot-class": "true" });
  },
});

Deno.test({
  name: "the dashboard is a ConfigMap where Grafana looks for it, as the file is",
  ignore,
  fn() {
    const isDashboard = ({ metadata }: KubernetesObject) => metadata.labels?.["grafana_dashboard"] === "1";
    assert.equal(rendered([]).some(isDashboard), false);
    const sets = ["monitoring.dashboard.enabled=true", "monitoring.dashboard.namespace=grafana"];
    const { metadata, data } = rendered(sets).find(isDashboard) as KubernetesObject & {
      readonly data: Readonly<Record<string, string>>;
    };
    assert.equal(metadata.namespace, "grafana");
    assert.equal(data["rds-csi.json"]?.trim(), readDeployFile("chart/dashboards/rds-csi.json").trim());
  },
});
