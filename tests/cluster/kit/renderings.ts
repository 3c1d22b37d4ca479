import assert from "node:assert/strict";
import { findHelm, renderings, renderingText } from "../../../tools/deploy/helm.ts";
import { type KubernetesObject, parseObjects, readProjectFile } from "../../deploy/objects.ts";
import { type Api, ApiError } from "./api.ts";
import { pathOf } from "./deployment.ts";
import { until } from "./waiting.ts";

/**
 * Offers every object of every rendering in git to the API server, which checks them strictly, admits them, and keeps
 * nothing. Answers how many there were.
 *
 * @throws {Error} with all that were refused, and why
 */
export async function dryRunRenderings(api: Api): Promise<number> {
  await installMonitoring(api);
  const refusals: string[] = [];
  let count = 0;
  for (const [name, rendering] of Object.entries(renderings)) {
    const objects = parseObjects(renderingText(findHelm()!, rendering));
    await ensureNamespaces(api, objects);
    for (const object of objects) {
      count++;
      const refusal = await refusalOf(api, object);
      if (refusal !== undefined) {
        refusals.push(`${name}: ${object.kind} ${object.metadata.name}: ${refusal}`);
      }
    }
  }
  assert.deepEqual(refusals, []);
  await refusesWhatItDoesNotKnow(api);
  return count;
}

/** Strict checks that check nothing would look the same. */
async function refusesWhatItDoesNotKnow(api: Api): Promise<void> {
  for (const wrong of ["Deployment", "ServiceMonitor", "PrometheusRule", "NetworkPolicy"]) {
    const objects = parseObjects(renderingText(findHelm()!, renderings.full));
    const object = objects.find(({ kind }) => kind === wrong) as KubernetesObject & { spec: object };
    const refusal = await refusalOf(
      api,
      { ...object, spec: { ...object.spec, unknown: 1 } } as typeof object,
    );
    assert.match(refusal ?? "it was taken", /unknown/, wrong);
  }
}

/** Under another name, as some fields of what is there already may not be changed. */
async function refusalOf(api: Api, object: KubernetesObject): Promise<string | undefined> {
  const other = { ...object, metadata: { ...object.metadata, name: `dry-${object.metadata.name}` } };
  const query = "fieldManager=helm&fieldValidation=Strict&dryRun=All";
  try {
    await api.text("PATCH", `${pathOf(other)}?${query}`, other, "application/apply-patch+yaml");
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

async function ensureNamespaces(api: Api, objects: readonly KubernetesObject[]): Promise<void> {
  for (const name of new Set(objects.flatMap(({ metadata: { namespace } }) => namespace ?? []))) {
    if (await api.find(`/api/v1/namespaces/${name}`) !== undefined) continue;
    await api.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  }
}

async function installMonitoring(api: Api): Promise<void> {
  for (const definition of parseObjects(readProjectFile("tests/cluster/kit/monitoring.yaml"))) {
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition);
  }
  await until("the custom resources of the Prometheus operator", async () => {
    const found = await api.find<{ resources: { kind: string }[] }>("/apis/monitoring.coreos.com/v1");
    const kinds = found?.resources.map(({ kind }) => kind) ?? [];
    return ["ServiceMonitor", "PrometheusRule"].every((kind) => kinds.includes(kind));
  }, { limitSeconds: 60 });
}
