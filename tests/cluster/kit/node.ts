import { join } from "node:path";
import { removeLeftovers } from "../../sanity/leftovers.ts";
import type { Subject } from "../../support/parts.ts";
import { registeredMessage } from "../../support/registration.ts";
import type { Chart } from "./chart.ts";
import type { ControlPlane } from "./control_plane.ts";
import { type Driver, driverName, makeNodeDriver } from "./driver.ts";
import { Kubelet } from "./kubelet.ts";
import type { Router } from "./router.ts";
import type { Tools } from "./tools.ts";
import { killProcesses } from "./traces.ts";
import { until } from "./waiting.ts";
import { Daemon } from "./daemon.ts";
import { imageName } from "./image.ts";

/** The cluster of a node. */
export interface NodeContext {
  /** The cluster's folder. */
  readonly folder: string;
  readonly plane: ControlPlane;
  readonly tools: Tools;
  readonly router: Router;
  readonly subject: Subject;
  readonly chart: Chart;
  /** Where the node is, if there are several places. */
  readonly place: string | undefined;
}

/** One node: containerd, a kubelet, the driver's node service. */
export class ClusterNode {
  readonly name: string;
  readonly folder: string;
  readonly runtime: Runtime;
  readonly kubelet: Kubelet;
  readonly driver: Driver;

  private constructor(name: string, folder: string, parts: [Runtime, Kubelet, Driver]) {
    this.name = name;
    this.folder = folder;
    [this.runtime, this.kubelet, this.driver] = parts;
  }

  /**
   * Prepares one; `start` starts it.
   *
   * @param kubeletFolder name of the kubelet's folder
   */
  static async prepare(context: NodeContext, name: string, kubeletFolder: string): Promise<ClusterNode> {
    const { plane, tools, router, subject, chart, place } = context;
    const folder = join(context.folder, name);
    const logs = join(plane.folder, "log");
    await Deno.mkdir(folder);
    const runtime = await Runtime.prepare(join(folder, "containerd"), logs, tools);
    const root = join(folder, kubeletFolder);
    const kubelet = await Kubelet.prepare({
      node: name,
      folder: root,
      runtimeEndpoint: runtime.endpoint,
      plane,
      tools,
    });
    const driver = await makeNodeDriver({ subject, folder, logs, router, chart }, name, root, place);
    return new ClusterNode(name, folder, [runtime, kubelet, driver]);
  }

  /** Starts all its parts, and waits until its CSINode lists the driver. */
  async start(signal?: AbortSignal): Promise<void> {
    await Promise.all([this.runtime.start(signal), this.driver.start(signal)]);
    await this.runtime.importImage(this.kubelet.location.tools.image);
    await this.kubelet.start(signal);
    await this.registered(1, signal);
  }

  /** Waits until kubelets of this node have registered the driver so often since it was started. */
  async registered(times: number, signal?: AbortSignal): Promise<void> {
    await until(`the driver to be registered at ${this.name}`, async () => {
      return await this.registrations() >= times;
    }, { limitSeconds: 60, ...(signal === undefined ? {} : { signal }) });
  }

  /** How often kubelets of this node have registered the driver since it was started. */
  registrations(): Promise<number> {
    return this.driver.logged(registeredMessage);
  }

  /** The driver's state folder on this node. */
  get stateFolder(): string {
    return join(this.kubelet.location.folder, "plugins", driverName, "state");
  }

  /** Ends its processes; pods are left to the clean-up of the cluster. */
  async stop(): Promise<readonly string[]> {
    await this.kubelet.stop();
    const problems = await this.driver.stop();
    await this.runtime.stop();
    return problems;
  }

  /**
   * Switches it off: all its processes, mounts and devices disappear, and everything that is usually in memory; its
   * files stay. `start` switches it on again.
   *
   * @param backing the folder of the router's files for the devices of this node, and of no other
   */
  async cutPower(backing: string): Promise<void> {
    await killProcesses(this.folder);
    await Promise.all([this.kubelet.kill(), this.driver.kill(), this.runtime.stop()]);
    for (const folder of [this.folder, backing]) {
      const { mounts, loops } = await removeLeftovers(folder);
      if (mounts.length + loops.length > 0) {
        throw new Error(`stays after a power cut: ${[...mounts, ...loops]}`);
      }
    }
    await this.runtime.forget();
  }
}

/** How long one command may take, in milliseconds. */
const commandMs = 60_000;
/** How long it may take until it serves, in seconds. */
const startSeconds = 60;

/** containerd and runc for one node, with all their files in one folder. */
class Runtime {
  readonly folder: string;
  readonly #logs: string;
  readonly #path: string;
  #daemon: Daemon | undefined;

  private constructor(folder: string, logs: string, path: string) {
    this.folder = folder;
    this.#logs = logs;
    this.#path = path;
  }

  /** Prepares one in `folder`; `start` starts it. */
  static async prepare(folder: string, logs: string, tools: Tools): Promise<Runtime> {
    await Deno.mkdir(folder);
    await writeNetwork(folder);
    await Deno.writeTextFile(join(folder, "config.toml"), configuration(folder));
    const path = [...tools.runtimeFolders, "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":");
    return new Runtime(folder, logs, path);
  }

  /** Starts containerd, and waits until it serves. */
  async start(signal?: AbortSignal): Promise<void> {
    const text = ["containerd", "--config", join(this.folder, "config.toml")];
    const name = `containerd-${this.folder.split("/").at(-2)}`;
    this.#daemon = Daemon.start(name, text, { folder: this.#logs, env: { PATH: this.#path } });
    await this.#daemon.ready(startSeconds, async () => {
      return (await this.#try(...this.#ctr, "version")).success;
    }, signal);
  }

  /** Imports an image from an archive. */
  async importImage(archive: string): Promise<void> {
    await this.#run(...this.#ctr, "images", "import", archive);
  }

  /** Its endpoint for the kubelet. */
  get endpoint(): string {
    return `unix://${join(this.folder, "c.sock")}`;
  }

  /**
   * Runs a shell script in a container and returns what it printed; throws unless it succeeds. It uses runc itself: a
   * short script may end before containerd's own client has read its output.
   */
  exec(container: string, script: string): Promise<string> {
    const root = join(this.folder, "runc/k8s.io");
    return this.#run("runc", "--root", root, "exec", container, "/bin/sh", "-c", script);
  }

  /** Removes what a machine loses when it is switched off: what is usually below /run. */
  async forget(): Promise<void> {
    for (const part of ["state", "runc"]) await Deno.remove(join(this.folder, part), { recursive: true });
  }

  async stop(): Promise<void> {
    await this.#daemon?.stop();
  }

  get #ctr(): readonly string[] {
    return ["ctr", "-a", join(this.folder, "c.sock"), "-n", "k8s.io"];
  }

  async #run(...text: readonly string[]): Promise<string> {
    const { success, stdout, stderr } = await this.#try(...text);
    const decoder = new TextDecoder();
    if (success) return decoder.decode(stdout).trimEnd();
    throw new Error(`${text.join(" ")}: ${decoder.decode(stderr)}${decoder.decode(stdout)}`);
  }

  #try(...text: readonly string[]): Promise<Deno.CommandOutput> {
    return new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$@"', "sh", ...text],
      env: { PATH: this.#path },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      signal: AbortSignal.timeout(commandMs),
    }).output();
  }
}

function configuration(folder: string): string {
  return `version = 2
root = "${folder}/root"
state = "${folder}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "${folder}/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "${folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${imageName}"
  # Without CAP_SYS_RESOURCE nobody may be made less likely to be killed.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${folder}/cni/bin"
    conf_dir = "${folder}/cni/conf"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    Root = "${folder}/runc"
`;
}

/**
 * Configures a network without connections: the kubelet is ready only with a network, and the tests' pods need none.
 */
async function writeNetwork(folder: string): Promise<void> {
  for (const part of ["cni/bin", "cni/conf"]) await Deno.mkdir(join(folder, part), { recursive: true });
  const network = { cniVersion: "0.4.0", name: "nothing", type: "nothing" };
  await Deno.writeTextFile(join(folder, "cni/conf/1.conf"), JSON.stringify(network));
  const interfaces = '"interfaces":[{"name":"\'"$CNI_IFNAME"\'","sandbox":"\'"$CNI_NETNS"\'"}]';
  const addresses = '"ips":[{"version":"4","address":"10.88.0.2/24","interface":0}]';
  const plugin = `#!/bin/sh
# Says what such a program has to say, and does nothing but to bring up the loopback.
case $CNI_COMMAND in
  VERSION) echo '{"cniVersion":"0.4.0","supportedVersions":["0.3.1","0.4.0"]}' ;;
  ADD)
    nsenter --net="$CNI_NETNS" ip link set lo up
    echo '{"cniVersion":"0.4.0",${interfaces},${addresses}}'
    ;;
esac
`;
  for (const name of ["nothing", "loopback"]) {
    await Deno.writeTextFile(join(folder, "cni/bin", name), plugin, { mode: 0o755 });
  }
}
