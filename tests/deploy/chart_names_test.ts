// What people know of charts: names, labels, images of a mirror, service accounts.
import assert from "node:assert/strict";
import { parse } from "yaml";
import { chartTest, render, rendered } from "./chart.ts";
import { type KubernetesObject, only, parseObjects, readDeployFile, type Workload } from "./objects.ts";

const address = { address: "10.0.0.1" };

const namesOf = (objects: readonly KubernetesObject[], kind: string) =>
  objects.filter((one) => one.kind === kind).map(({ metadata }) => metadata.name);

const names: readonly (readonly [values: object, controller: string, label: string])[] = [
  [{}, "rds-csi-controller", "rds-csi"],
  [{ nameOverride: "storage" }, "rds-csi-storage-controller", "storage"],
  [{ nameOverride: "rds" }, "rds-csi-controller", "rds"],
  [{ fullnameOverride: "home" }, "home-controller", "rds-csi"],
  [{ nameOverride: "storage", fullnameOverride: "home" }, "home-controller", "storage"],
];

for (const [values, controller, label] of names) {
  chartTest(`the chart's objects are called as people expect with ${JSON.stringify(values)}`, () => {
    const objects = rendered({ values: { router: address, ...values } });
    const deployment = only<Workload>(objects, "Deployment");
    assert.equal(deployment.metadata.name, controller);
    const selected =
      (deployment.spec as unknown as { selector: { matchLabels: Record<string, string> } }).selector;
    assert.equal(selected.matchLabels["app.kubernetes.io/name"], label);
  });
}

chartTest("every object has the common labels, which take none of the chart's own away", () => {
  const commonLabels = { team: "storage", "app.kubernetes.io/name": "mine" };
  for (const { kind, metadata } of rendered({ values: { router: address, commonLabels } })) {
    const labels = (metadata as unknown as { labels: Record<string, string> }).labels;
    assert.equal(labels["team"], "storage", `${kind} ${metadata.name}`);
    assert.notEqual(labels["app.kubernetes.io/name"], "mine");
  }
});

const imagesOf = (values: object) =>
  rendered({ values: { router: address, ...values } }).flatMap((object) =>
    ["Deployment", "DaemonSet"].includes(object.kind)
      ? (object as unknown as Workload).spec.template.spec.containers.map(({ image }) => image)
      : []
  );

chartTest("all images come from a mirror, where there is one, under their own names", () => {
  const mirror = "mirror.example.net:5000/cache";
  const liveness = { node: { sidecars: { livenessProbe: { enabled: true } } } };
  const plain = imagesOf(liveness);
  const mirrored = imagesOf({ ...liveness, global: { imageRegistry: mirror } });
  assert.deepEqual(mirrored, plain.map((image) => `${mirror}/${image!.replace(/^[^/]*\.[^/]*\//, "")}`));
  assert.ok(mirrored.includes(`${mirror}/sig-storage/livenessprobe:v2.19.0`));
});

chartTest("the driver's image has a registry of its own, which wins over the mirror", () => {
  const image = { registry: "registry.example.net", repository: "storage/rds-csi", tag: "1.2.3" };
  for (const global of [{}, { imageRegistry: "mirror.example.net" }]) {
    assert.ok(imagesOf({ image, global }).includes("registry.example.net/storage/rds-csi:1.2.3"));
  }
});

chartTest("the driver's image comes from the mirror also where its repository names a registry", () => {
  const image = { repository: "registry.example.net/storage/rds-csi", tag: "1.2.3" };
  assert.ok(imagesOf({ image }).includes("registry.example.net/storage/rds-csi:1.2.3"));
  const global = { imageRegistry: "mirror.example.net/x" };
  assert.ok(imagesOf({ image, global }).includes("mirror.example.net/x/storage/rds-csi:1.2.3"));
});

/** The objects without a check that each service account is among them. */
const withOtherAccounts = (values: object) =>
  parseObjects(render({ values: { router: address, ...values } }).yaml);

const accounts: readonly (readonly [account: object, used: string, made: boolean])[] = [
  [{}, "rds-csi-controller", true],
  [{ name: "mine" }, "mine", true],
  [{ create: false, name: "theirs" }, "theirs", false],
  [{ create: false }, "default", false],
];

for (const [serviceAccount, used, made] of accounts) {
  chartTest(
    `the controller runs as the service account of ${JSON.stringify(serviceAccount)}, and may work`,
    () => {
      const objects = withOtherAccounts({ controller: { serviceAccount } });
      const { spec } = only<Workload>(objects, "Deployment").spec.template;
      assert.equal((spec as unknown as { serviceAccountName: string }).serviceAccountName, used);
      assert.equal(namesOf(objects, "ServiceAccount").includes(used), made);
      const subjects = objects.filter(({ kind }) => /RoleBinding$/.test(kind)).flatMap((one) =>
        (one as unknown as { subjects: { name: string }[] }).subjects.map(({ name }) => name)
      );
      assert.deepEqual([...new Set(subjects)], [used]);
    },
  );
}

chartTest("the node's service account may be somebody else's too", () => {
  const objects = withOtherAccounts({ node: { serviceAccount: { create: false, name: "theirs" } } });
  const { spec } = only<Workload>(objects, "DaemonSet").spec.template;
  assert.equal((spec as unknown as { serviceAccountName: string }).serviceAccountName, "theirs");
  assert.deepEqual(namesOf(objects, "ServiceAccount"), ["rds-csi-controller"]);
});

chartTest("constraints of one's own take the place of the chart's", () => {
  const constraint = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" };
  const controller = { topologySpreadConstraints: [constraint], replicas: 1 };
  const { spec } =
    only<Workload>(rendered({ values: { router: address, controller } }), "Deployment").spec.template;
  assert.deepEqual((spec as unknown as { topologySpreadConstraints: object[] }).topologySpreadConstraints, [
    constraint,
  ]);
});

chartTest("two controllers are the default, and the example for one node has one", () => {
  const replicas = (values: object) =>
    (only<Workload>(rendered({ values }), "Deployment").spec as unknown as { replicas: number }).replicas;
  assert.equal(replicas({ router: address }), 2);
  const example = parse(readDeployFile("examples/single-node.yaml"));
  assert.equal(replicas(example), 1);
  assert.deepEqual(namesOf(rendered({ values: example }), "PodDisruptionBudget"), []);
});

chartTest("a controller may change no Lease but the one by which it leads", () => {
  for (const driverName of ["rds.csi.srvlab.io", "Other.example.com"]) {
    const roles = rendered({ values: { router: address, driverName } }).filter(({ kind }) => kind === "Role");
    const rules = roles.flatMap((one) =>
      (one as unknown as { rules: { verbs: string[]; resourceNames?: string[] }[] }).rules
    );
    const names = rules.filter(({ verbs }) => verbs.includes("update")).map(({ resourceNames }) =>
      resourceNames
    );
    assert.deepEqual(names, [[`${driverName.toLowerCase()}-controller`]]);
  }
});
