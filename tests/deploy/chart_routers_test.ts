import assert from "node:assert/strict";
import { routerKeys } from "../../src/cli/config/router_keys.ts";
import type { ServeConfig } from "../../src/cli/config/config.ts";
import { chartTest, render, rendered } from "./chart.ts";
import { configOf, filesOf } from "./judge.ts";
import {
  driverOf,
  type KubernetesObject,
  only,
  readProjectFile,
  type Rule,
  type Workload,
} from "./objects.ts";

type RouterValues = Readonly<Record<string, unknown>>;

const first: RouterValues = { name: "a", default: true, address: "10.0.0.1", existingSecret: "secret-a" };
const second: RouterValues = { name: "b", address: "10.0.0.2", existingSecret: "secret-b" };

function valuesOf(routers: readonly RouterValues[], more: object = {}): object {
  return { config: { routers }, ...more };
}

function withRouters(
  ...routers: readonly RouterValues[]
): { objects: KubernetesObject[]; controller: Workload; config: ServeConfig } {
  const objects = rendered({ values: valuesOf(routers) });
  const controller = only<Workload>(objects, "Deployment");
  return { objects, controller, config: configOf(driverOf(controller), filesOf(controller, objects)) };
}

chartTest("several routers reach the driver as its file, each with the files of its own Secret", () => {
  const { config, controller, objects } = withRouters(first, {
    ...second,
    port: 2222,
    overcommit: 1.5,
    basePaths: ["/pool/b"],
    secretKeys: { password: "word" },
  });
  const [a, b] = config.routers;
  assert.deepEqual([a!.settings.backend, a!.isDefault, a!.router.address], ["a", true, "10.0.0.1"]);
  assert.deepEqual([a!.router.keyFile, a!.router.hostKeys], [
    "/etc/rds-csi/routers/a/rds-private-key",
    ["/etc/rds-csi/routers/a/rds-host-key"],
  ]);
  assert.deepEqual([b!.router.port, b!.router.keyFile, b!.router.passwordFile], [
    2222,
    undefined,
    "/etc/rds-csi/routers/b/word",
  ]);
  assert.deepEqual([b!.settings.overcommit, b!.settings.basePaths], [1.5, ["/pool/b"]]);
  const projected = controller.spec.template.spec.volumes.find(({ name }) => name === "credentials")
    ?.projected;
  assert.equal(projected?.defaultMode, 0o440);
  const secrets = projected.sources.flatMap(({ secret }) => secret ?? []);
  assert.deepEqual(secrets.map(({ name, items }) => [name, items.map(({ key }) => key)]), [
    ["secret-a", ["rds-host-key", "rds-private-key"]],
    ["secret-b", ["rds-host-key", "word"]],
  ]);
  const texts = JSON.stringify(objects.filter(({ kind }) => kind === "ConfigMap"));
  assert.equal(/existingSecret|secretKeys/.test(texts), false);
});

chartTest("what a router says itself is not taken from its Secret, where it may be missing", () => {
  const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF9vcmRpbmFyeS1sb29raW5nLWtleS1mb3ItdGVzdHM";
  const { config, controller } = withRouters(first, { ...second, hostKeys: [key] });
  assert.deepEqual(config.routers[1]!.router.hostKeys, [key]);
  const { sources } = controller.spec.template.spec.volumes.find(({ name }) => name === "credentials")!
    .projected!;
  assert.deepEqual(sources.at(-1)?.secret?.items.map((item) => item.key), ["rds-private-key"]);
});

chartTest("another file makes another pod, as it is read at the start only", () => {
  const sumOf = (...routers: readonly RouterValues[]) =>
    withRouters(...routers).controller.spec.template.metadata.annotations?.["checksum/config"];
  assert.equal(sumOf(first), sumOf(first));
  assert.notEqual(sumOf(first), sumOf(first, second));
  assert.ok(sumOf(first));
});

chartTest("the NetworkPolicy lets the controller reach each router", () => {
  const routers = [first, { ...second, address: "b.example.com", port: 2222 }];
  const objects = rendered({ values: valuesOf(routers, { networkPolicy: { enabled: true } }) });
  const { spec } = only<KubernetesObject & { spec: { egress: readonly { ports: { port: number }[] }[] } }>(
    objects,
    "NetworkPolicy",
  );
  assert.deepEqual(spec.egress.map(({ ports }) => ports.map(({ port }) => port)), [[53, 53], [443, 6443], [
    22,
  ], [2222]]);
});

chartTest("nodes that different routers reach are told so by a DaemonSet for each group", () => {
  const rack = (name: string) => ({ "example.com/rack": name });
  const groups = ["a", "b"].map((name) => ({ name, nodeSelector: rack(name), topology: rack(name) }));
  const routers = [{ ...first, topology: rack("a") }, { ...second, topology: rack("b") }];
  const objects = rendered({ values: valuesOf(routers, { node: { groups } }) });
  const nodes = objects.filter(({ kind }) => kind === "DaemonSet") as Workload[];
  assert.deepEqual(nodes.map(({ metadata }) => metadata.name), ["rds-csi-node-a", "rds-csi-node-b"]);
  const selectors = new Set(nodes.map(({ spec }) => JSON.stringify(spec.selector.matchLabels)));
  assert.equal(selectors.size, 2, "none takes another's pods for its own");
  for (const [index, name] of ["a", "b"].entries()) {
    assert.deepEqual(configOf(driverOf(nodes[index]!)).node?.topology, rack(name));
    const { nodeSelector } = nodes[index]!.spec.template.spec;
    assert.deepEqual(nodeSelector, { ...rack(name), "kubernetes.io/os": "linux" });
  }
});

chartTest(
  "the schema knows every key of a router in the file, and its profile in the place of a file of it",
  () => {
    const schema = JSON.parse(readProjectFile("deploy/chart/values.schema.json"));
    const { properties } = schema.properties.config.properties.routers.items;
    const keys = Object.keys(routerKeys).filter((key) => key !== "routerProfile");
    assert.deepEqual(
      Object.keys(properties).toSorted(),
      [...keys, "existingSecret", "secretKeys", "profile"].toSorted(),
    );
    const { name: _, ...nameless } = first;
    const { address: __, ...nowhere } = first;
    const wrong = [nameless, nowhere, { ...first, name: "A" }, { ...first, ports: 22 }, {
      ...first,
      settleTime: 5,
    }];
    for (const one of wrong) {
      assert.equal(
        render({ values: valuesOf([one]) }).success,
        false,
        JSON.stringify(one),
      );
    }
    assert.equal(render({ values: valuesOf([]) }).success, false, "no router at all");
  },
);

chartTest(
  "the provisioner tells the scheduler the room of each place, where it is told to, and may do so",
  () => {
    const routers = [first, second].map((router, at) => ({ ...router, topology: { rack: `r${at}` } }));
    const read = (more: object) => {
      const objects = rendered({ values: valuesOf(routers, more) });
      const { containers } = only<Workload>(objects, "Deployment").spec.template.spec;
      const { args, env } = containers.find(({ name }) => name === "csi-provisioner")!;
      const role = objects.find(({ kind, metadata }) =>
        kind === "Role" && metadata.name === "rds-csi-sidecars"
      );
      const { spec } = only<KubernetesObject & { spec: { storageCapacity: boolean } }>(objects, "CSIDriver");
      return {
        flags: args.filter((word) => /capacity/.test(word)),
        variables: (env ?? []).map(({ name, valueFrom }) => [name, valueFrom?.fieldRef?.fieldPath]),
        rules: (role as KubernetesObject & { rules: readonly Rule[] } | undefined)?.rules ?? [],
        isBound: objects.some(({ kind, metadata }) =>
          kind === "RoleBinding" && metadata.name === "rds-csi-sidecars"
        ),
        isRead: spec.storageCapacity,
      };
    };
    assert.deepEqual(read({}), { flags: [], variables: [], rules: [], isBound: false, isRead: false });
    const on = read({ storageCapacity: true });
    assert.deepEqual(on.flags, ["--enable-capacity", "--capacity-ownerref-level=2"]);
    assert.deepEqual(on.variables, [["NAMESPACE", "metadata.namespace"], ["POD_NAME", "metadata.name"]]);
    assert.deepEqual(on.rules.map(({ resources, verbs }) => [resources.join(), verbs.length]), [
      ["csistoragecapacities", 7],
      ["pods", 1],
      ["replicasets", 1],
    ]);
    assert.deepEqual([on.isBound, on.isRead], [true, true]);
  },
);

chartTest("no room is told to the scheduler without a topology, as it would then place no pod", () => {
  const withPlace = { ...first, topology: { rack: "a" } };
  for (const routers of [[], [first], [withPlace, second]]) {
    const values = valuesOf(routers, {
      storageCapacity: true,
      router: { address: routers.length === 0 ? "10.0.0.1" : "" },
    });
    const { success, complaint } = render({ values });
    assert.equal(success, false);
    assert.match(complaint, /storageCapacity needs a topology of every router|different topologies/);
  }
});
