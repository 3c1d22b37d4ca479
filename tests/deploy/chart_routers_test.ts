import assert from "node:assert/strict";
import { routerKeys } from "../../src/cli/config/router_keys.ts";
import type { ServeConfig } from "../../src/cli/config/config.ts";
import { findHelm, renderChart, type Rendered } from "../../tools/deploy/helm.ts";
import { assertSound, configOf, filesOf } from "./judge.ts";
import {
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  readProjectFile,
  type Workload,
} from "./objects.ts";

const helm = findHelm();
const ignore = helm === undefined;
if (ignore) {
  const note = "ignored: the tests of a chart with several routers need Helm, which is not here; make helm\n";
  Deno.stderr.writeSync(new TextEncoder().encode(note));
}

type RouterValues = Readonly<Record<string, unknown>>;

const first: RouterValues = { name: "a", default: true, address: "10.0.0.1", existingSecret: "secret-a" };
const second: RouterValues = { name: "b", address: "10.0.0.2", existingSecret: "secret-b" };

async function render(routers: readonly RouterValues[], more: object = {}): Promise<Rendered> {
  const file = await Deno.makeTempFile({ prefix: "rds-csi-test-", suffix: ".json" });
  try {
    await Deno.writeTextFile(file, JSON.stringify({ config: { routers }, ...more }));
    return renderChart(helm!, [file]);
  } finally {
    await Deno.remove(file);
  }
}

async function rendered(
  ...routers: readonly RouterValues[]
): Promise<{ objects: KubernetesObject[]; controller: Workload; config: ServeConfig }> {
  const { success, yaml, complaint } = await render(routers);
  assert.ok(success, complaint);
  const objects = parseObjects(yaml);
  assertSound(objects);
  const controller = only<Workload>(objects, "Deployment");
  return { objects, controller, config: configOf(driverOf(controller), filesOf(controller, objects)) };
}

Deno.test({
  name: "several routers reach the driver as its file, each with the files of its own Secret",
  ignore,
  async fn() {
    const { config, controller, objects } = await rendered(first, {
      ...second,
      port: 2222,
      overcommit: 1.5,
      basePaths: ["/pool/b"],
      secretKeys: { password: "word" },
    });
    assert.equal(config.controller, undefined);
    const [a, b] = config.backends;
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
  },
});

Deno.test({
  name: "what a router says itself is not taken from its Secret, where it may be missing",
  ignore,
  async fn() {
    const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF9vcmRpbmFyeS1sb29raW5nLWtleS1mb3ItdGVzdHM";
    const { config, controller } = await rendered(first, { ...second, hostKeys: [key] });
    assert.deepEqual(config.backends[1]!.router.hostKeys, [key]);
    const { sources } = controller.spec.template.spec.volumes.find(({ name }) => name === "credentials")!
      .projected!;
    assert.deepEqual(sources.at(-1)?.secret?.items.map((item) => item.key), ["rds-private-key"]);
  },
});

Deno.test({
  name: "another file makes another pod, as it is read at the start only",
  ignore,
  async fn() {
    const sumOf = async (...routers: readonly RouterValues[]) =>
      (await rendered(...routers)).controller.spec.template.metadata.annotations?.["checksum/config"];
    assert.equal(await sumOf(first), await sumOf(first));
    assert.notEqual(await sumOf(first), await sumOf(first, second));
    assert.ok(await sumOf(first));
  },
});

Deno.test({
  name: "the NetworkPolicy lets the controller reach each router",
  ignore,
  async fn() {
    const routers = [first, { ...second, address: "b.example.com", port: 2222 }];
    const { yaml } = await render(routers, { networkPolicy: { enabled: true } });
    const { spec } = only<KubernetesObject & { spec: { egress: readonly { ports: { port: number }[] }[] } }>(
      parseObjects(yaml),
      "NetworkPolicy",
    );
    assert.deepEqual(spec.egress.map(({ ports }) => ports.map(({ port }) => port)), [[53, 53], [443, 6443], [
      22,
    ], [2222]]);
  },
});

Deno.test({
  name: "nodes that different routers reach are told so by a DaemonSet for each group",
  ignore,
  async fn() {
    const rack = (name: string) => ({ "example.com/rack": name });
    const groups = ["a", "b"].map((name) => ({ name, nodeSelector: rack(name), topology: rack(name) }));
    const routers = [{ ...first, topology: rack("a") }, { ...second, topology: rack("b") }];
    const { success, yaml, complaint } = await render(routers, { node: { groups } });
    assert.ok(success, complaint);
    const objects = parseObjects(yaml);
    assertSound(objects);
    const nodes = objects.filter(({ kind }) => kind === "DaemonSet") as Workload[];
    assert.deepEqual(nodes.map(({ metadata }) => metadata.name), ["rds-csi-node-a", "rds-csi-node-b"]);
    const selectors = new Set(nodes.map(({ spec }) => JSON.stringify(spec.selector.matchLabels)));
    assert.equal(selectors.size, 2, "none takes another's pods for its own");
    for (const [index, name] of ["a", "b"].entries()) {
      assert.deepEqual(configOf(driverOf(nodes[index]!)).node?.topology, rack(name));
      const { nodeSelector } = nodes[index]!.spec.template.spec;
      assert.deepEqual(nodeSelector, { ...rack(name), "kubernetes.io/os": "linux" });
    }
  },
});

Deno.test({
  name: "the schema knows every key of a router in the file, but for what needs a file that nothing mounts",
  ignore,
  async fn() {
    const schema = JSON.parse(readProjectFile("deploy/chart/values.schema.json"));
    const { properties } = schema.properties.config.properties.routers.items;
    const keys = Object.keys(routerKeys).filter((key) => key !== "routerProfile");
    assert.deepEqual(
      Object.keys(properties).toSorted(),
      [...keys, "existingSecret", "secretKeys"].toSorted(),
    );
    const { name: _, ...nameless } = first;
    const { address: __, ...nowhere } = first;
    const wrong = [nameless, nowhere, { ...first, name: "A" }, { ...first, ports: 22 }, {
      ...first,
      settleTime: 5,
    }];
    for (const one of wrong) assert.equal((await render([one])).success, false, JSON.stringify(one));
    assert.equal((await render([])).success, false, "no router at all");
  },
});
