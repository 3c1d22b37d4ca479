import assert from "node:assert/strict";
import { chartTest, render, rendered } from "./chart.ts";
import { configOf, filesOf } from "./judge.ts";
import {
  type Container,
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  readProjectFile,
  type Workload,
} from "./objects.ts";

function driver(kind: string, ...sets: string[]): Container {
  return driverOf(only<Workload>(rendered({ sets }), kind));
}

chartTest(
  "helm test runs a pod without privileges that writes to a volume of a class with a file system",
  () => {
    const pod = (...sets: string[]): Pod => {
      const { success, yaml, complaint } = render({ sets, only: "templates/tests/volume.yaml" });
      assert.ok(success, complaint);
      return only<Pod>(parseObjects(yaml), "Pod");
    };
    const { metadata, spec } = pod();
    assert.equal(metadata.annotations?.["helm.sh/hook"], "test");
    assert.deepEqual(
      spec.volumes.map(({ ephemeral }) => ephemeral.volumeClaimTemplate.spec.storageClassName),
      [
        "rds-ext4",
      ],
    );
    assert.deepEqual(spec.containers.map(({ image }) => image), ["busybox:1.37"]);
    for (const { securityContext } of spec.containers) {
      assert.equal(
        securityContext.allowPrivilegeEscalation,
        false,
      );
    }
    const other = pod("test.storageClass=mine", "test.image=registry.example.net/busybox:1").spec;
    assert.equal(other.volumes[0]?.ephemeral.volumeClaimTemplate.spec.storageClassName, "mine");
    assert.equal(other.containers[0]?.image, "registry.example.net/busybox:1");
    // A pod with such a claim would wait for ever, because a raw block volume cannot be mounted.
    const { success } = render({
      values: { router: { address: "10.0.0.1" }, storageClasses: [{ name: "raw" }] },
      only: "templates/tests/volume.yaml",
    });
    assert.equal(success, false, "there is no pod, which Helm reports");
  },
);

/** The tested fields of the pod of `helm test`. */
interface Pod extends KubernetesObject {
  readonly spec: {
    readonly containers: readonly Pick<Container, "image" | "securityContext">[];
    readonly volumes: readonly {
      readonly ephemeral: {
        readonly volumeClaimTemplate: { readonly spec: { readonly storageClassName: string } };
      };
    }[];
  };
}

chartTest(
  "the chart installs more objects, with Helm's templates in them, and keeps the driver off nodes",
  () => {
    const noRouter = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: "no-router", operator: "DoesNotExist" }] }],
        },
      },
    };
    const objects = rendered({
      values: {
        router: { address: "10.0.0.1" },
        node: { affinity: noRouter },
        extraObjects: [{
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: { name: "{{ .Release.Name }}-mine", namespace: "{{ .Release.Namespace }}" },
        }],
      },
    });
    assert.equal(only<KubernetesObject>(objects, "ConfigMap", "rds-csi-mine").metadata.namespace, "rds-csi");
    const { affinity } = only<Workload>(objects, "DaemonSet").spec.template.spec;
    assert.deepEqual(affinity, noRouter);
  },
);

Deno.test("every value has a description in the chart's README", () => {
  const rows = readProjectFile("deploy/chart/README.md").split("\n").filter((line) => /^\| [a-z]/.test(line));
  assert.ok(rows.length > 90, `${rows.length} rows`);
  assert.deepEqual(rows.filter((row) => !/\S.* \|$/.test(row.split(" | ").slice(3).join(" | "))), []);
});

chartTest(
  "a node serves metrics at its own address, or to itself where nobody scrapes them, and is probed there",
  () => {
    const probesOf = (...sets: string[]) => {
      const { readinessProbe, livenessProbe, startupProbe, args } = driver("DaemonSet", ...sets);
      const hosts = [readinessProbe, livenessProbe, startupProbe].map((probe) => probe?.httpGet.host);
      return [args.filter((arg) => /^--(metrics|status)-address=/.test(arg)), hosts];
    };
    const [mine, hostIp] = ["127.0.0.1", "--metrics-address=[$(HOST_IP)]:9809"];
    const none = [undefined, undefined, undefined];
    const byDefault = [[hostIp, `--status-address=${mine}:9809`], none];
    assert.deepEqual(probesOf(), byDefault);
    assert.deepEqual(probesOf("node.metricsAddress=$(HOST_IP)"), byDefault);
    assert.deepEqual(probesOf("node.statusAddress=:9810"), [[hostIp, "--status-address=:9810"], none]);
    assert.deepEqual(probesOf("node.metricsAddress=0.0.0.0"), [["--metrics-address=0.0.0.0:9809"], none]);
    for (const set of [`node.metricsAddress=${mine}`, "monitoring.service.enabled=false"]) {
      assert.deepEqual(probesOf(set), [[`--metrics-address=${mine}:9809`], [mine, mine, mine]], set);
    }
  },
);

for (
  const [what, sets, files] of [
    ["one router", [], []],
    ["one router, by a password", ["router.secretKeys.password=word", "clusterId=lab"], []],
    ["several routers", [
      "router.address=",
      "config.routers[0].name=a",
      "config.routers[0].default=true",
      "config.routers[0].address=10.0.0.2",
      "config.routers[0].existingSecret=a",
    ], ["/etc/rds-csi/config.yaml"]],
  ] as const
) {
  chartTest(`a command that is run in the controller's pod finds ${what} without a flag`, () => {
    const objects = rendered({ sets });
    const workload = only<Workload>(objects, "Deployment");
    const { args, env = [] } = driverOf(workload);
    const texts = new Map(env.map(({ name, value }) => [name, value]));
    assert.deepEqual(files.map((path) => texts.get("RDS_CONFIG") === path), files.map(() => true));
    const served = configOf(
      { ...driverOf(workload), env: env.filter(({ value }) => value === undefined) },
      filesOf(workload, objects),
    );
    const roles = args.slice(0, 1).concat(
      args.filter((arg) => /^--(mode|kubernetes|leader-election|endpoint|metrics)/.test(arg)),
    );
    const found = configOf({ ...driverOf(workload), args: roles }, filesOf(workload, objects));
    assert.deepEqual(found.routers, served.routers);
  });
}
