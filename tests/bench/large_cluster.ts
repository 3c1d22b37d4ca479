// The memory of a controller that runs as in a pod of a cluster, with thousands of volumes, and every loop that runs by itself.
import { join } from "node:path";
import { type CsiClients, dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { volumesPath } from "../../src/kubernetes/objects.ts";
import { formatEpoch } from "../../src/volume/model/epoch.ts";
import { plainDisk } from "../../src/simulator/model/disk.ts";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { clusterVariables, serviceAccountFolder } from "../../src/cli/config/cluster.ts";
import { FakeKubeApi } from "../fakes/kube_api.ts";
import { kubeTls } from "../fakes/kube_tls.ts";
import { aPersistentVolume, aVolumeAttachment, testDriver } from "../fakes/kube_client.ts";
import { aDisk, aHolder, aRecord } from "../fakes/records.ts";
import { type Part, programOf, startProgram, type Subject } from "../support/parts.ts";

/** What a controller of a large cluster needed. */
export interface LargeClusterMeasurements {
  readonly volumes: number;
  readonly lists: number;
  /** Rounds that compared the router with the cluster. */
  readonly rounds: number;
  /** The most that was seen, once all of that was under way. */
  readonly peakRssBytes: number;
}

/** Longest that all of it may take. */
const limitMs = 300_000;

/**
 * Starts a controller whose cluster has so many volumes, each attached, and lists them again and again while the rounds
 * run.
 *
 * @throws {Error} when a list or the loops do not see all of them
 */
export async function measureLargeCluster(
  subject: Subject,
  volumes: number,
  lists: number,
): Promise<LargeClusterMeasurements> {
  await using made = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-bench-" });
  made.defer(() => Deno.remove(folder, { recursive: true }));
  const users = [{ name: "csi", password: "bench" }];
  const simulator = await startSimulator({ clock: systemClock, random: systemRandom, timingScale: 0, users });
  made.defer(() => simulator.close());
  const api = new FakeKubeApi(kubeTls);
  made.defer(() => api[Symbol.asyncDispose]());
  for (let index = 0; index < volumes; index++) addAttached(simulator, api, index);
  await Deno.writeTextFile(join(folder, "password"), "bench\n", { mode: 0o600 });
  const driver = await startInPod(subject, api, folder, serveArgs(folder, simulator));
  made.defer(async () => void await driver.stop());
  return await watch(driver, api, `unix://${folder}/csi.sock`, volumes, lists);
}

/** Starts it with a pod's service account, where a pod has it: in a mount namespace of its own. It needs root. */
async function startInPod(
  subject: Subject,
  api: FakeKubeApi,
  folder: string,
  args: readonly string[],
): Promise<Part> {
  const account = join(folder, "account");
  await Deno.mkdir(account);
  await Deno.writeTextFile(join(account, "token"), "t\n");
  await Deno.writeTextFile(join(account, "ca.crt"), kubeTls.ca);
  const script =
    `mount -t tmpfs run /run && mkdir -p ${serviceAccountFolder} && cp ${account}/* ${serviceAccountFolder} && ` +
    'exec "$@"';
  const command = ["unshare", "--mount", "sh", "-c", script, "sh", ...programOf(subject), "serve"];
  const [host, port] = clusterVariables;
  return startProgram("serve", command, folder, args, { [host]: "127.0.0.1", [port]: String(api.port) });
}

async function watch(
  driver: Part,
  api: FakeKubeApi,
  address: string,
  volumes: number,
  lists: number,
): Promise<LargeClusterMeasurements> {
  const clients = dial(loadCsi(), address, systemClock);
  const untilMs = systemClock.monotonicMs() + limitMs;
  // The first page of each look at the attachments.
  const rounds = () =>
    api.requests.filter(({ path, query }) =>
      path.endsWith("/volumeattachments") && query["continue"] === undefined
    )
      .length;
  let peakRssBytes = 0;
  let listed = 0;
  try {
    await driver.ready(async () =>
      await clients.identity.call("Probe", {}, 2_000).then(() => true, () => false)
    );
    while (listed < lists || rounds() < 3) {
      const entries = await countListed(clients);
      if (entries !== volumes) throw new Error(`listed ${entries} of ${volumes} volumes`);
      listed++;
      peakRssBytes = Math.max(peakRssBytes, await driver.residentBytes());
      if (systemClock.monotonicMs() > untilMs) throw new Error(`only ${rounds()} rounds, ${listed} lists`);
    }
    return { volumes, lists: listed, rounds: rounds(), peakRssBytes };
  } finally {
    clients.close();
  }
}

/** Lists all volumes, page by page; answers how many there are. */
async function countListed({ controller }: CsiClients): Promise<number> {
  let count = 0;
  for (let startingToken = "";;) {
    const { entries, nextToken } = await controller.call("ListVolumes", { startingToken });
    count += entries.length;
    if (nextToken === "") return count;
    startingToken = nextToken;
  }
}

/** A volume that a node holds, as router and cluster have it. */
function addAttached(simulator: Simulator, api: FakeKubeApi, index: number): void {
  const node = `worker-${index % 16}.example.net`;
  const epoch = { counter: 3, nonce: "0a0b0c0d" };
  const record = aRecord({ epoch, holders: [aHolder(node)] });
  const id = `pvc-${index.toString(16).padStart(28, "0")}`;
  const { comment, sizeBytes, exportNqn, exportPort } = aDisk(record, { id });
  simulator.model.disks.add({
    ...plainDisk,
    slot: id,
    type: "file",
    filePath: `/storage-pool/metal-csi/${id}.${record.cluster}.img`,
    comment,
    sizeBytes,
    attachedBytes: sizeBytes,
    fileSizeBytes: sizeBytes,
    exported: true,
    port: exportPort,
    nqn: exportNqn,
    mountFilesystem: false,
  });
  const attributes = {
    "storage.kubernetes.io/csiProvisionerIdentity": `1700000000000-1234-${testDriver}`,
    backend: "default",
    nvmeAddress: "127.0.0.1",
    nvmePort: "4420",
    volumePath: "/storage-pool/metal-csi",
    migrationTimeoutSeconds: "300",
  };
  const publishContext = {
    nvmeAddress: "127.0.0.1",
    nvmePort: "4420",
    nqn: exportNqn,
    epoch: formatEpoch(epoch),
    size: String(sizeBytes),
    readonly: "false",
    mayFormat: "false",
    nvme_address: "127.0.0.1",
    nvme_port: "4420",
    nvme_nqn: exportNqn,
    fs_type: "ext4",
  };
  api.put(volumesPath, aPersistentVolume(id, { attributes }));
  api.put("/apis/storage.k8s.io/v1/volumeattachments", aVolumeAttachment(id, node, { publishContext }));
}

function serveArgs(folder: string, simulator: Simulator): string[] {
  return [
    ...["--mode", "controller", "--endpoint", `unix://${folder}/csi.sock`, "--driver-name", testDriver],
    ...["--rds-address", "127.0.0.1", "--rds-port", String(simulator.sshPort), "--rds-user", "csi"],
    ...["--rds-password-file", join(folder, "password"), "--rds-host-key", simulator.hostKeyPublic],
    ...["--cluster-id", "test", "--reconcile-interval", "5s"],
    ...["--metrics-address", "127.0.0.1:0", "--lease-namespace", "default"],
  ];
}
