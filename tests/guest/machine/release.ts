import { join } from "node:path";
import { formatProfile } from "../../../src/router_profile/profile.ts";
import { getProfile } from "../../../src/simulator/profile.ts";
import { driverName } from "../../cluster/kit/driver.ts";
import type { KubeObject } from "../../cluster/kit/api.ts";
import { type Event, type Lease, paths } from "../../cluster/kit/objects.ts";
import { until } from "../../cluster/kit/waiting.ts";
import { projectRoot } from "../../support/parts.ts";
import { hostOutput } from "../../../tools/host_command.ts";
import { valuesWithoutDigests } from "./images.ts";
import type { MachineCluster } from "./cluster.ts";
import { answers } from "./router.ts";

/** Where the chart is installed. */
export const namespace = "rds-csi";

/** Pods of the release, as a collection of the API. */
export const podsPath = `/api/v1/namespaces/${namespace}/pods`;

/** How many controllers the chart installs for a driver. */
const controllers = 2;

/** Longest until all pods of the release are ready, in seconds: in emulation all programs start slowly. */
const readySeconds = 600;

/**
 * Installs the chart as docs/quick-start.md does: a namespace, a Secret, values, Helm.
 *
 * @param more values beside those that say which router there is
 */
export async function installChart(cluster: MachineCluster, more: object = {}): Promise<void> {
  const { folder, router, tools } = cluster;
  const env = await environment(cluster);
  const kubectl = (...args: string[]) => hostOutput(tools.program("kubectl"), args, { env });
  const hostKey = join(folder, "host-key");
  const scanned = await hostOutput("ssh-keyscan", [
    ...["-p", `${router.sshPortOfHost}`, "-t", "rsa,ed25519", "127.0.0.1"],
  ]);
  await Deno.writeTextFile(hostKey, scanned);
  await kubectl("create", "namespace", namespace);
  await kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged");
  await kubectl("-n", namespace, "create", "secret", "generic", "rds-csi-secret", ...[
    `--from-file=rds-private-key=${cluster.key}`,
    `--from-file=rds-host-key=${hostKey}`,
  ]);
  await Deno.writeTextFile(valuesFile(cluster), JSON.stringify({ ...valuesFor(cluster), ...more }));
  await helm(cluster, "install");
}

/** Gives the driver's image on all nodes another tag as well, and upgrades the release to that. */
export async function upgradeChart(cluster: MachineCluster, tag: string): Promise<void> {
  for (const { guest, runtime } of cluster.nodes) {
    const { image } = await driverOf(cluster, guest.name);
    await runtime.tagImage(`docker.io/library/${image}`, tag);
  }
  await helm(cluster, "upgrade", "--set", `image.tag=${tag}`);
}

async function helm(cluster: MachineCluster, verb: "install" | "upgrade", ...args: string[]): Promise<void> {
  const chart = join(projectRoot, "deploy/chart");
  const images = join(cluster.folder, "images.json");
  await Deno.writeTextFile(images, JSON.stringify(valuesWithoutDigests()));
  const files = ["--values", images, "--values", valuesFile(cluster)];
  const text = [verb, "rds-csi", chart, "--namespace", namespace, ...files, ...args];
  await hostOutput(cluster.tools.helm, text, { env: await environment(cluster) });
}

async function environment(cluster: MachineCluster): Promise<Record<string, string>> {
  return { KUBECONFIG: await cluster.plane.kubeconfig("admin"), HOME: cluster.folder };
}

function valuesFile(cluster: MachineCluster): string {
  return join(cluster.folder, "values.json");
}

/**
 * Waits until every pod of the release is ready, and every node's kubelet has the driver. Answers the pods' names.
 *
 * @param tag that the driver's image has in each of them, if any is meant
 */
export async function releaseReady(
  cluster: MachineCluster,
  signal: AbortSignal,
  tag = "",
): Promise<readonly string[]> {
  const drivers = (await cluster.api.list(paths.drivers)).map(({ metadata }) => metadata.name);
  for (const { guest } of cluster.nodes) {
    await until(`${drivers.join(" and ")} to be registered at ${guest.name}`, async () => {
      const found = await cluster.api.find<NodeDrivers>(`${paths.nodeDrivers}/${guest.name}`);
      const names = found?.spec.drivers?.map(({ name }) => name) ?? [];
      return drivers.every((name) => names.includes(name));
    }, { limitSeconds: readySeconds, everyMs: 500, signal, state: () => stateOf(cluster) });
  }
  const pods = await until("all pods of the release to be ready", async () => {
    const found = await cluster.api.list<ReleasePod>(podsPath);
    const isMeant = (pod: ReleasePod) => isReady(pod) && driverIn(pod)?.image.endsWith(tag) === true;
    const count = drivers.length * (controllers + cluster.nodes.length);
    return found.every(isMeant) && found.length === count && found;
  }, { limitSeconds: readySeconds, everyMs: 500, signal, state: () => stateOf(cluster) });
  return pods.map(({ metadata }) => metadata.name);
}

/** The node of the controller that leads, and the pods of those that wait for its place. */
export async function controllersOf(
  cluster: MachineCluster,
): Promise<{ readonly leadingNode: string; readonly waiting: readonly string[] }> {
  const lease = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${driverName}-controller`;
  const { spec } = await cluster.api.get<Lease>(lease);
  const pods = (await cluster.api.list<ReleasePod>(podsPath))
    .filter(({ metadata }) => metadata.name.startsWith("rds-csi-controller-"));
  const leads = ({ metadata }: ReleasePod) => spec.holderIdentity?.startsWith(metadata.name) === true;
  const leadingNode = pods.find(leads)?.spec.nodeName;
  if (leadingNode === undefined) throw new Error(`No controller is ${spec.holderIdentity}`);
  return { leadingNode, waiting: pods.filter((pod) => !leads(pod)).map(({ metadata }) => metadata.name) };
}

/**
 * The driver's container on a node: its pod, its id, its image, how often it was started again.
 *
 * @param daemonSet whose pod it is in
 */
export async function driverOf(
  cluster: MachineCluster,
  node: string,
  daemonSet = "rds-csi-node",
): Promise<{
  readonly pod: string;
  readonly id: string;
  readonly image: string;
  readonly restarts: number;
  readonly ready: boolean;
}> {
  const pods = await cluster.api.list<ReleasePod>(podsPath);
  const found = pods.find(({ metadata, spec }) =>
    metadata.name.startsWith(`${daemonSet}-`) && spec.nodeName === node
  );
  const container = found?.status.containerStatuses?.find(({ name }) => name === "driver");
  if (found === undefined || container === undefined) throw new Error(`There is no ${daemonSet} at ${node}`);
  const { containerID = "", restartCount: restarts, ready } = container;
  return {
    pod: found.metadata.name,
    id: containerID.replace("containerd://", ""),
    image: driverIn(found)?.image ?? "",
    restarts,
    ready,
  };
}

function driverIn({ spec }: ReleasePod): { readonly image: string } | undefined {
  return spec.containers.find(({ name }) => name === "driver");
}

/** A pod with the conditions and containers that tell how it is. */
interface ReleasePod extends KubeObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly { readonly name: string; readonly image: string }[];
  };
  readonly status: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly containerStatuses?: readonly {
      readonly name: string;
      readonly ready: boolean;
      readonly restartCount: number;
      readonly containerID?: string;
      readonly state: object;
    }[];
  };
}

/** A CSINode. */
export interface NodeDrivers {
  readonly spec: { readonly drivers?: readonly { readonly name: string }[] };
}

function isReady({ status }: ReleasePod): boolean {
  return status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
}

/** Prints what the driver's containers on a node have logged last. */
const lastLogged = `for log in /var/log/pods/*/driver/*.log; do
  [ ! -e $log ] || { echo $log; tail -n 3 $log | cut -c 1-300; }
done`;

/** What is not ready and why, in words. */
async function stateOf(cluster: MachineCluster): Promise<string> {
  const pods = await cluster.api.list<ReleasePod>(podsPath);
  const containers = pods.flatMap(({ metadata, status }) =>
    (status.containerStatuses ?? []).filter(({ ready }) => !ready).map(({ name, restartCount, state }) =>
      `\n  ${metadata.name} ${name}: ${restartCount} restarts, ${JSON.stringify(state)}`
    )
  );
  const events = await cluster.api.list<Event>(paths.events);
  const warnings = events.filter(({ type }) => type === "Warning").slice(-10)
    .map(({ reason, message, involvedObject }) => `\n  ${involvedObject.name}: ${reason}: ${message}`);
  const logs = await Promise.all(cluster.nodes.map(({ guest }) => guest.sh(lastLogged)));
  return [...containers, ...warnings, ...logs.map((log) => `\n${log}`), ...await cluster.fallen()].join("");
}

/** As on the page, with the router's address and ports here, and what is known of this router. */
function valuesFor({ router }: MachineCluster): object {
  const profile = { ...getProfile("ros-7.24"), answers };
  return {
    clusterId: "my-home-lab",
    router: {
      address: router.address,
      port: router.sshPort,
      nvmeAddress: router.address,
      nvmePort: router.nvmePort,
      basePaths: ["/storage-pool/metal-csi"],
      profile: formatProfile(profile),
    },
    image: { repository: "rds-csi" },
    volumeSnapshotClasses: [{ name: "rds" }],
  };
}
