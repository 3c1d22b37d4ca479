import assert from "node:assert/strict";
import { readServeConfig, type ServeConfig } from "../../src/cli/config/config.ts";
import { clusterVariables } from "../../src/cli/config/cluster.ts";
import { parseRoutersFile } from "../../src/cli/config/routers_file.ts";
import { PERMISSIONS } from "../../tools/permissions.ts";
import { type Container, driverOf, type KubernetesObject, only, type Workload } from "./objects.ts";

/** The kernel's folders: the C library opens them, without a permission of the runtime. */
const kernelFolders = ["/dev", "/proc", "/sys"];

/** Whether a path is a folder, or lies in it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/**
 * Returns the configuration that the driver reads from a container's arguments, with any value for each of its
 * variables and the kubelet's.
 *
 * @param files texts of files that the arguments name, by path
 */
export function configOf(
  { args, env = [] }: Container,
  files: ReadonlyMap<string, string | undefined> = new Map(),
): ServeConfig {
  const [command, ...flags] = args;
  assert.equal(command, "serve");
  const texts = new Map(
    env.map(({ name, value = name === "HOST_IP" ? "192.0.2.1" : "node-1" }) => [name, value]),
  );
  const expanded = flags.map((flag) =>
    flag.replaceAll(/\$\((\w+)\)/g, (all, name) => texts.get(name) ?? all)
  );
  const read = (path: string) => files.get(path) ?? assert.fail(`${path} is not there to be read`);
  const variable = (name: string) =>
    texts.get(name) ?? (clusterVariables.includes(name as never) ? "node-1" : undefined);
  return readServeConfig(expanded, variable, read, parseRoutersFile);
}

/**
 * Returns the files from ConfigMaps and Secrets for a workload's driver, by path; with their texts where these are
 * known.
 */
export function filesOf(
  workload: Workload,
  objects: readonly KubernetesObject[],
): ReadonlyMap<string, string | undefined> {
  const files = new Map<string, string | undefined>();
  for (const { name, mountPath } of driverOf(workload).volumeMounts) {
    const { secret, projected, configMap } = workload.spec.template.spec.volumes.find((one) =>
      one.name === name
    )!;
    const own = configMap === undefined ? { secret } : { configMap };
    for (const source of projected?.sources ?? [own]) {
      for (const { path } of source.secret?.items ?? []) files.set(`${mountPath}/${path}`, undefined);
      if (!("configMap" in source)) continue;
      const { data } = only<KubernetesObject & { data: Readonly<Record<string, string>> }>(
        objects,
        "ConfigMap",
        source.configMap!.name,
      );
      const items = source.configMap!.items ?? Object.keys(data).map((key) => ({ key, path: key }));
      for (const { key, path } of items) files.set(`${mountPath}/${path}`, data[key]);
    }
  }
  return files;
}

/** Asserts everything that must hold for every rendering of the chart. */
export function assertSound(objects: readonly KubernetesObject[]): void {
  const keys = objects.map(({ apiVersion, kind, metadata }) => {
    assert.ok(apiVersion && kind && metadata?.name, JSON.stringify({ apiVersion, kind, metadata }));
    return `${kind} ${metadata.namespace ?? ""}/${metadata.name}`;
  });
  assert.equal(new Set(keys).size, keys.length, keys.join(", "));
  const workloads = objects.filter(({ kind }) => ["Deployment", "DaemonSet"].includes(kind)) as Workload[];
  for (const workload of workloads) assertSoundWorkload(workload, objects);
  const drivers = workloads.filter(hasDriver);
  const controllers = drivers.filter(({ kind }) => kind === "Deployment");
  // One for each kind of volumes.
  const names = controllers.map((workload) =>
    configOf(driverOf(workload), filesOf(workload, objects)).driverName
  );
  assert.ok(names.length > 0);
  assert.equal(new Set(names).size, names.length, names.join(", "));
  assert.ok(drivers.some(({ kind }) => kind === "DaemonSet"));
  for (const workload of drivers) assertSoundDriver(driverOf(workload), filesOf(workload, objects));
}

function hasDriver({ spec }: Workload): boolean {
  return spec.template.spec.containers.some(({ name }) => name === "driver");
}

function assertSoundWorkload(workload: Workload, objects: readonly KubernetesObject[]): void {
  const { selector, template } = workload.spec;
  for (const [label, value] of Object.entries(selector.matchLabels)) {
    assert.equal(template.metadata.labels[label], value, label);
  }
  const { containers, volumes, serviceAccountName, automountServiceAccountToken } = template.spec;
  for (const { name, securityContext } of containers) assertConfined(name, securityContext);
  if (serviceAccountName === undefined) assert.equal(automountServiceAccountToken, false);
  else only(objects, "ServiceAccount", serviceAccountName);
  const mounted = containers.flatMap(({ volumeMounts }) => volumeMounts.map(({ name }) => name));
  assert.deepEqual([...new Set(mounted)].toSorted(), volumes.map(({ name }) => name).toSorted());
  const names = containers.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
}

/**
 * Asserts that a container has only the privileges that it needs. The node's driver, which has more, gives its reasons.
 */
function assertConfined(name: string, context: Container["securityContext"]): void {
  assert.equal(context.readOnlyRootFilesystem, true, name);
  if (context.privileged === true) return assert.equal(name, "driver");
  assert.equal(context.allowPrivilegeEscalation, false, name);
  assert.deepEqual(context.capabilities, { drop: ["ALL"] }, name);
}

/** Asserts that the driver accepts its arguments, and may use every path in them and every mount. */
function assertSoundDriver(driver: Container, files: ReadonlyMap<string, string | undefined>): void {
  const config = configOf(driver, files);
  assert.deepEqual(config.warnings, []);
  const role = PERMISSIONS[config.node === undefined ? "controller" : "node"];
  for (const { mountPath, readOnly = false } of driver.volumeMounts) {
    if (kernelFolders.includes(mountPath)) continue;
    const folders = readOnly ? role.read : role.write;
    assert.ok(folders.some((folder) => isWithin(mountPath, folder)), `${mountPath} is not permitted`);
  }
  const routers = config.routers.map(({ router }) => router);
  const credentials = routers.flatMap(({ keyFile, passwordFile, hostKeys }) => [
    ...[keyFile, passwordFile].filter((path) => path !== undefined),
    ...hostKeys.filter((one) => one.startsWith("/")),
  ]);
  for (const path of credentials) assert.ok(files.has(path), `${path} is told and not there`);
  const reported = [
    config.endpoint.replace("unix://", ""),
    ...[config.node?.stateDirectory, config.registration?.kubeletPath, config.registration?.socketPath],
  ];
  for (const path of reported) {
    if (path === undefined) continue;
    const isMounted = driver.volumeMounts.some(({ mountPath }) => isWithin(path, mountPath));
    assert.ok(isMounted, `${path} is told and not mounted`);
  }
  const port = driver.ports?.find(({ name }) => name === "metrics")?.containerPort;
  assert.equal(port, config.metricsAddress?.port);
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"] as const) {
    const { port, path } = driver[probe]?.httpGet ?? {};
    assert.ok(driver.ports?.some(({ name }) => name === port), `${probe} asks at ${port}`);
    if (probe !== "livenessProbe") assert.equal(port, "metrics");
    assert.equal(path, probe === "readinessProbe" ? "/readyz" : "/healthz");
  }
}
