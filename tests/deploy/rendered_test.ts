import assert from "node:assert/strict";
import { parse } from "yaml";
import { renderings } from "../../tools/deploy/renderings.ts";
import { assertSound, configOf, filesOf } from "./judge.ts";
import {
  driverOf,
  type KubernetesObject,
  only,
  parseObjects,
  readProjectFile,
  type Workload,
} from "./objects.ts";
import { alertsFile } from "./queries.ts";

const objectsOf = (name: keyof typeof renderings) => parseObjects(readProjectFile(renderings[name].target));

for (const name of ["default", "production", "full"] as const) {
  Deno.test(`the ${name} rendering is of sound objects, whose driver takes every argument`, () => {
    assertSound(objectsOf(name));
  });
}

Deno.test("the full rendering has an object of every template", () => {
  const folder = new URL("../../deploy/chart/templates", import.meta.url);
  const templates = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) =>
    name.endsWith(".yaml")
  );
  const text = readProjectFile(renderings.full.target);
  for (const name of templates) assert.ok(text.includes(`# Source: rds-csi/templates/${name}\n`), name);
});

/** Paths of all values that the schema knows, as far as it says which there are. */
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
  assert.deepEqual(missing, ["global"], "what Helm itself may hand down");
});

Deno.test("the alerts in the PrometheusRule are those of the file, untouched by Helm's own templates", () => {
  const rule = only<KubernetesObject & { spec: unknown }>(objectsOf("full"), "PrometheusRule");
  assert.deepEqual(rule.spec, parse(readProjectFile(`deploy/${alertsFile}`)));
});

Deno.test("the full rendering's node has the usual sidecars, and its controller what was asked for", () => {
  const objects = objectsOf("full");
  const node = only<Workload>(objects, "DaemonSet", "storage-node-a");
  assert.deepEqual(node.spec.template.spec.containers.map(({ name }) => name), [
    "driver",
    "node-driver-registrar",
    "liveness-probe",
  ]);
  const controller = only<Workload>(objects, "Deployment");
  const { cluster, metricsAddress, backends } = configOf(driverOf(controller), filesOf(controller, objects));
  assert.deepEqual([cluster?.migrationPairs, metricsAddress?.port], ["kubevirt", 9000]);
  assert.deepEqual(backends.map(({ settings }) => settings.backend), ["rack-a", "rack-b"]);
});
