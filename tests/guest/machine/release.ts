import { join } from "node:path";
import { formatProfile } from "../../../src/router_profile/profile.ts";
import { getProfile } from "../../../src/simulator/profile.ts";
import { driverName } from "../../cluster/kit/driver.ts";
import type { KubeObject } from "../../cluster/kit/api.ts";
import { type Event, paths } from "../../cluster/kit/objects.ts";
import { until } from "../../cluster/kit/waiting.ts";
import { projectRoot } from "../../support/parts.ts";
import { hostOutput } from "../kit/host_command.ts";
import type { MachineCluster } from "./cluster.ts";
import { hostAddress } from "./network.ts";

/** Where the chart is installed. */
export const namespace = "rds-csi";

/** Pods of the release, as a collection of the API. */
export const podsPath = `/api/v1/namespaces/${namespace}/pods`;

/** Longest until all pods of the release are ready, in seconds: in emulation all programs start slowly. */
const readySeconds = 600;

/** Installs the chart as docs/quick-start.md does: a namespace, a Secret, values, Helm. */
export async function installChart(cluster: MachineCluster): Promise<void> {
  const { folder, router, tools } = cluster;
  const env = { KUBECONFIG: await cluster.plane.kubeconfig("admin"), HOME: folder };
  const kubectl = (...args: string[]) => hostOutput(tools.program("kubectl"), args, { env });
  const hostKey = join(folder, "host-key");
  const scanned = await hostOutput("ssh-keyscan", [
    ...["-p", `${router.sshPort}`, "-t", "rsa,ed25519", "127.0.0.1"],
  ]);
  await Deno.writeTextFile(hostKey, scanned);
  await kubectl("create", "namespace", namespace);
  await kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged");
  await kubectl("-n", namespace, "create", "secret", "generic", "rds-csi-secret", ...[
    `--from-file=rds-private-key=${cluster.key}`,
    `--from-file=rds-host-key=${hostKey}`,
  ]);
  const values = join(folder, "values.json");
  await Deno.writeTextFile(values, JSON.stringify(valuesFor(cluster)));
  const chart = join(projectRoot, "deploy/chart");
  await hostOutput(
    tools.helm,
    ["install", "rds-csi", chart, "--namespace", namespace, "--values", values],
    { env },
  );
}

/** Waits until every pod of the release is ready, and the node's kubelet has the driver. Answers the pods' names. */
export async function releaseReady(
  cluster: MachineCluster,
  node: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  await until("the driver to be registered", async () => {
    const found = await cluster.api.find<NodeDrivers>(`${paths.nodeDrivers}/${node}`);
    return found?.spec.drivers?.some(({ name }) => name === driverName);
  }, { limitSeconds: readySeconds, everyMs: 500, signal, state: () => stateOf(cluster) });
  const pods = await until("all pods of the release to be ready", async () => {
    const found = await cluster.api.list<ReleasePod>(podsPath);
    return found.every(isReady) && found.length === 3 && found;
  }, { limitSeconds: readySeconds, everyMs: 500, signal, state: () => stateOf(cluster) });
  return pods.map(({ metadata }) => metadata.name);
}

/** A pod with the conditions and containers that tell how it is. */
export interface ReleasePod extends KubeObject {
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

interface NodeDrivers {
  readonly spec: { readonly drivers?: readonly { readonly name: string }[] };
}

function isReady({ status }: ReleasePod): boolean {
  return status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;
}

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
  return [...containers, ...warnings, ...await cluster.fallen()].join("");
}

/** As on the page, with the router's address and ports here, and what is known of this router. */
function valuesFor({ router, nvmePort }: MachineCluster): object {
  const profile = { ...getProfile("ros-7.24"), answers: { grow: "live" } } as const;
  return {
    clusterId: "my-home-lab",
    router: {
      address: hostAddress,
      port: router.sshPort,
      nvmeAddress: hostAddress,
      nvmePort,
      basePaths: ["/storage-pool/metal-csi"],
      profile: formatProfile(profile),
    },
    image: { repository: "rds-csi" },
    volumeSnapshotClasses: [{ name: "rds" }],
  };
}
