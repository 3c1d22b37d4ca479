import { systemClock } from "../host/clock.ts";
import { ApiError, type KubernetesApi } from "../kubernetes/api.ts";
import { VolumeError } from "../volume/errors.ts";
import { clusterVariables, serviceAccountFolder } from "./config/cluster.ts";
import { FlagError, type FlagTable, readFlags } from "./flags.ts";
import type { CommandIo } from "./io.ts";

const form = /^(?:pvc\/([^/]+)\/([^/]+)|pv\/([^/]+))$/;

/**
 * Completes the command line of a command about a volume from the cluster: the volume's handle replaces
 * `pvc/NAMESPACE/NAME` or `pv/NAME`, and the cluster's id is added if it is missing. Without a cluster it stays
 * unchanged.
 *
 * @param args with the command's subject first
 * @throws {FlagError} when a name needs a cluster and there is none
 * @throws {VolumeError} not-found when there is no such object, or it has no volume; unavailable when the API server
 *   fails
 */
export async function inCluster(
  args: readonly string[],
  table: FlagTable,
  io: Pick<CommandIo, "env" | "signal">,
): Promise<string[]> {
  const [subject = "", ...rest] = args;
  if (subject === "" || subject.startsWith("-")) return [...args];
  const flags = readFlags(table, rest, io.env);
  const name = form.exec(subject);
  const knowsId = flags.isGiven("cluster-id");
  if (name === null && knowsId) return [...args];
  const address = addressOf(flags.text("kubeconfig"), io.env);
  if (address === undefined) {
    if (name === null) return [...args];
    throw new FlagError([
      `${subject} can only be found in a cluster; use --kubeconfig, or the volumeHandle of its PersistentVolume`,
    ]);
  }
  const { KubernetesClient } = await import("../kubernetes/client.ts");
  const client = await KubernetesClient.open(address, systemClock);
  try {
    const get = <T>(path: string) => read<T>(client, path, io.signal);
    const handle = name === null ? subject : await handleOf(name, get);
    return [handle, ...rest, ...knowsId ? [] : [`--cluster-id=${await uidOf(get)}`]];
  } finally {
    client.close();
  }
}

function addressOf(kubeconfig: string, env: CommandIo["env"]) {
  if (kubeconfig !== "") return { kubeconfig };
  const [host, port] = clusterVariables.map((variable) => env(variable) ?? "");
  return host && port ? { host, port, folder: serviceAccountFolder } : undefined;
}

type Get = <T>(path: string) => Promise<T>;

async function read<T>(api: KubernetesApi, path: string, signal: AbortSignal): Promise<T> {
  try {
    return await api.request<T>({ method: "GET", path, signal });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const kind = error.status === 404 ? "not-found" : "unavailable";
    throw new VolumeError(kind, `Cannot find the volume in the cluster: ${error.message}`, { cause: error });
  }
}

async function handleOf([subject, namespace, claim, volume]: RegExpExecArray, get: Get): Promise<string> {
  const name = volume ?? (await get<{ readonly spec?: { readonly volumeName?: string } }>(
    `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${claim}`,
  )).spec?.volumeName;
  if (!name) {
    throw new VolumeError("not-found", `Cannot find the volume because the claim has none yet: ${subject}`);
  }
  const { spec } = await get<{ readonly spec?: { readonly csi?: { readonly volumeHandle?: string } } }>(
    `/api/v1/persistentvolumes/${name}`,
  );
  const handle = spec?.csi?.volumeHandle;
  if (handle) return handle;
  throw new VolumeError(
    "not-found",
    `Cannot find the volume because pv/${name} belongs to no CSI driver: ${subject}`,
  );
}

async function uidOf(get: Get): Promise<string> {
  return (await get<{ readonly metadata: { readonly uid: string } }>("/api/v1/namespaces/kube-system"))
    .metadata.uid;
}
