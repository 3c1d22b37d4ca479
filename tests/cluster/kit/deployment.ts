import { join } from "node:path";
import { hostOutput } from "../../../tools/host_command.ts";
import type { Binding, KubernetesObject, Rule } from "../../deploy/objects.ts";
import type { Chart } from "./chart.ts";
import type { ControlPlane } from "./control_plane.ts";
import type { Tools } from "./tools.ts";
import { until } from "./waiting.ts";

/**
 * Installs the prerequisites that a person installs: the custom resources of snapshots, and the rules of the
 * snapshot-controller.
 */
export async function installSnapshots(plane: ControlPlane, tools: Tools): Promise<void> {
  const config = await plane.kubeconfig("admin");
  const { resources, rules } = tools.manifests;
  for (const path of [resources, rules]) {
    // Uses kubectl, because these manifests are meant for people; its caches are in the given folder.
    const cache = ["--cache-dir", join(plane.folder, "kubectl")];
    await hostOutput(tools.program("kubectl"), ["--kubeconfig", config, ...cache, "apply", "-f", path]);
  }
  await until("the custom resources of snapshots", async () => {
    const found = await plane.api.find<{ resources: { name: string }[] }>("/apis/snapshot.storage.k8s.io/v1");
    const names = found?.resources.map(({ name }) => name) ?? [];
    return ["volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"].every((name) =>
      names.includes(name)
    );
  }, { limitSeconds: 60 });
}

/**
 * Applies every object of the chart by server-side apply, and waits until their rules are effective.
 *
 * @throws {ApiError} for an object that the API server refuses, or of which it does not know every field
 */
export async function applyChart(plane: ControlPlane, chart: Chart): Promise<void> {
  const query = "fieldManager=helm&fieldValidation=Strict";
  for (const object of chart.objects) {
    await plane.api.text("PATCH", `${pathOf(object)}?${query}`, object, "application/apply-patch+yaml");
  }
  await untilGranted(plane, chart);
}

/** Waits until the API server applies the rules of the chart. */
export async function untilGranted(plane: ControlPlane, chart: Chart): Promise<void> {
  await until("the rules of the chart to count", () => areGranted(plane, chart), { limitSeconds: 60 });
}

/** A kubeconfig as a file, for a service account. */
export async function accountKubeconfig(
  plane: ControlPlane,
  namespace: string,
  account: string,
): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
  const { status } = await plane.api.create<{ status: { token: string } }>(path, request);
  return await plane.writeKubeconfig(account, status.token);
}

/** The API path of an object. */
export function pathOf({ apiVersion, kind, metadata: { namespace, name } }: KubernetesObject): string {
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const location = namespace === undefined ? "" : `/namespaces/${namespace}`;
  const collection = kind.toLowerCase().replace(/s$/, "se").replace(/y$/, "ie") + "s";
  return `${group}${location}/${collection}/${name}`;
}

/** Whether the API server applies every rule that is bound to an account; it learns of them a moment late. */
async function areGranted(plane: ControlPlane, { objects }: Chart): Promise<boolean> {
  const bindings = objects.filter(({ kind }) => kind.endsWith("RoleBinding")) as Binding[];
  const asked = bindings.flatMap((binding) => {
    const { namespace } = binding.metadata;
    const role = objects.find(({ kind, metadata }) =>
      kind === binding.roleRef.kind && metadata.name === binding.roleRef.name &&
      metadata.namespace === namespace
    ) as KubernetesObject & { readonly rules: readonly Rule[] } | undefined;
    if (role === undefined) throw new Error(`${binding.metadata.name} binds a role that is not there`);
    return binding.subjects.map((subject) => ({
      user: `system:serviceaccount:${subject.namespace}:${subject.name}`,
      rules: role.rules,
      namespace,
    }));
  });
  const granted = await Promise.all(asked.map(async ({ user, rules, namespace }) => {
    const attributes = rules.flatMap((rule) => attributesOf(rule, namespace));
    return (await Promise.all(attributes.map((one) => isGranted(plane, user, one)))).every(Boolean);
  }));
  return granted.every(Boolean);
}

function attributesOf(rule: Rule, namespace: string | undefined): object[] {
  return rule.apiGroups.flatMap((group) =>
    rule.resources.flatMap((path) => {
      const [resource, subresource] = path.split("/");
      const what = { group, resource, subresource, namespace, name: rule.resourceNames?.[0] };
      return rule.verbs.map((verb) => ({ ...what, verb }));
    })
  );
}

async function isGranted(plane: ControlPlane, user: string, resourceAttributes: object): Promise<boolean> {
  const path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
  const spec = { user, resourceAttributes };
  const { status } = await plane.api.create<{ status: { allowed: boolean } }>(path, {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    spec,
  });
  return status.allowed;
}
