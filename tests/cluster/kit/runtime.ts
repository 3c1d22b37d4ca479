import { join } from "node:path";
import { Daemon } from "./daemon.ts";
import { imageName } from "./image.ts";
import type { Tools } from "./tools.ts";

/** Longest that one command may take, in milliseconds. */
const commandMs = 60_000;
/** Longest until it serves, in seconds. */
const startSeconds = 60;

/** containerd and runc for one node, with everything of theirs in one folder. */
export class Runtime {
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

  /** Starts containerd; it serves when this ends. */
  async start(signal?: AbortSignal): Promise<void> {
    const words = ["containerd", "--config", join(this.folder, "config.toml")];
    const name = `containerd-${this.folder.split("/").at(-2)}`;
    this.#daemon = Daemon.start(name, words, { folder: this.#logs, env: { PATH: this.#path } });
    await this.#daemon.ready(startSeconds, async () => {
      return (await this.#try(...this.#ctr, "version")).success;
    }, signal);
  }

  /** Gives it an image out of an archive. */
  async importImage(archive: string): Promise<void> {
    await this.#run(...this.#ctr, "images", "import", archive);
  }

  /** Where the kubelet finds it. */
  get endpoint(): string {
    return `unix://${join(this.folder, "c.sock")}`;
  }

  /**
   * Runs a shell script in a container and answers what it printed; throws unless it succeeds. By runc itself: what ends at
   * once may end before containerd's own client has read what it printed.
   */
  exec(container: string, script: string): Promise<string> {
    const root = join(this.folder, "runc/k8s.io");
    return this.#run("runc", "--root", root, "exec", container, "/bin/sh", "-c", script);
  }

  /** Forgets what a machine forgets when it is switched off: what usually lies below /run. */
  async forget(): Promise<void> {
    for (const part of ["state", "runc"]) await Deno.remove(join(this.folder, part), { recursive: true });
  }

  async stop(): Promise<void> {
    await this.#daemon?.stop();
  }

  get #ctr(): readonly string[] {
    return ["ctr", "-a", join(this.folder, "c.sock"), "-n", "k8s.io"];
  }

  async #run(...words: readonly string[]): Promise<string> {
    const { success, stdout, stderr } = await this.#try(...words);
    const decoder = new TextDecoder();
    if (success) return decoder.decode(stdout).trimEnd();
    throw new Error(`${words.join(" ")}: ${decoder.decode(stderr)}${decoder.decode(stdout)}`);
  }

  #try(...words: readonly string[]): Promise<Deno.CommandOutput> {
    return new Deno.Command("/bin/sh", {
      args: ["-c", 'exec "$@"', "sh", ...words],
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

/** A network that connects nothing: the kubelet is ready only where there is one, and the tests' pods need none. */
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
