import { imageName } from "../../cluster/kit/image.ts";
import { quote } from "../kit/agent.ts";
import type { Guest } from "../kit/guest.ts";

/** Longest until containerd serves, in seconds. */
const startSeconds = 120;
/** Longest that an image is imported, in seconds. */
const importSeconds = 600;

/** Addresses of pods. */
export const podNetwork = "10.88.0.0/24";

const client = "ctr --namespace k8s.io";
const engine = "runc --root /run/containerd/runc/k8s.io";

/** containerd and runc in a guest that has them on its root. */
export class MachineRuntime {
  /** Where the kubelet finds it. */
  static readonly endpoint = "unix:///run/containerd/containerd.sock";
  readonly #guest: Guest;

  constructor(guest: Guest) {
    this.#guest = guest;
  }

  /** Writes what it is started with. */
  async configure(): Promise<void> {
    await this.#guest.write("/etc/containerd/config.toml", configuration);
    await this.#guest.write("/etc/cni/net.d/10-bridge.conflist", JSON.stringify(network));
  }

  /** Mounts control groups, and starts containerd; it serves when this ends. */
  async start(): Promise<void> {
    await this.#guest.sh(
      `mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup /sys/fs/cgroup
       setsid containerd >>/var/log/containerd.log 2>&1 </dev/null &`,
    );
    await this.#guest.until(`${client} version >/dev/null`, { limitSeconds: startSeconds, everyMs: 500 });
  }

  /** Ends containerd; containers run on. */
  async stop(): Promise<void> {
    await this.#guest.sh("pkill -x containerd && while pgrep -x containerd >/dev/null; do sleep 0.1; done");
  }

  /** Gives it an image out of an archive in the guest. */
  async importImage(path: string): Promise<void> {
    await this.#guest.sh(`${client} images import ${quote(path)}`, { limitSeconds: importSeconds });
  }

  /** Gives an image that it has another tag as well. */
  async tagImage(image: string, tag: string): Promise<void> {
    await this.#guest.sh(`${client} images tag ${quote(image)} ${quote(image.replace(/[^:]*$/, tag))}`);
  }

  /** Runs a shell script in a container and answers what it printed; throws unless it succeeds. */
  exec(container: string, script: string): Promise<string> {
    return this.#guest.sh(`${engine} exec ${quote(container)} /bin/sh -c ${quote(script)}`);
  }

  /** SIGKILL to a container's first process, and so to all of them. */
  async kill(container: string): Promise<void> {
    await this.#guest.sh(`${engine} kill ${quote(container)} KILL`);
  }
}

/** The defaults, but for the image of sandboxes, which cannot be downloaded here, and Debian's folder of plugins. */
const configuration = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${imageName}"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
`;

/** Pods have addresses of their own, and the node is their router. */
const network = {
  cniVersion: "0.4.0",
  name: "pods",
  plugins: [{
    type: "bridge",
    bridge: "cni0",
    isGateway: true,
    ipam: { type: "host-local", ranges: [[{ subnet: podNetwork }]], routes: [{ dst: "0.0.0.0/0" }] },
  }],
};
