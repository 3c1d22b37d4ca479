import { dirname, join } from "node:path";
import type { ControlPlane } from "../../cluster/kit/control_plane.ts";
import { type Node, paths } from "../../cluster/kit/objects.ts";
import { until } from "../../cluster/kit/waiting.ts";
import { quote } from "../kit/agent.ts";
import type { Guest } from "../kit/guest.ts";
import { apiServerAddress, guestAddress } from "./network.ts";
import { MachineRuntime } from "./runtime.ts";

/** Longest until its node is ready, in seconds. */
const readySeconds = 300;

/** The port of the guest at which it serves logs and commands. */
export const kubeletPort = 10250;

const folder = "/etc/kubernetes";
const installed = "/opt/bin/kubelet";

/** The kubelet of a guest, whose node is called as the guest is. */
export class MachineKubelet {
  readonly #guest: Guest;
  readonly #plane: ControlPlane;
  readonly #program: string;

  /** @param program of the host */
  constructor(guest: Guest, plane: ControlPlane, program: string) {
    this.#guest = guest;
    this.#plane = plane;
    this.#program = program;
  }

  /** Installs it, and writes what it is started with. */
  async configure(): Promise<void> {
    await Deno.copyFile(this.#program, join(this.#guest.folder, "host", "kubelet"));
    // There an immutable host has its own programs, too.
    await this.#guest.sh(`mkdir -p ${dirname(installed)} && mv /host/kubelet ${installed}`);
    const { api, certificates } = this.#plane;
    const file = await this.#plane.kubeconfig(`system:node:${this.#guest.name}`);
    const kubeconfig = (await Deno.readTextFile(file)).replace(api.access.url, `https://${apiServerAddress}`);
    // A power cut may leave the certificate that it has made empty: then it never starts again.
    await this.#guest.sh("rm -rf /var/lib/kubelet/pki");
    await this.#guest.write(`${folder}/kubelet.kubeconfig`, kubeconfig, 0o600);
    await this.#guest.write(
      `${folder}/kubelet-clients.crt`,
      await Deno.readFile(certificates.kubeletClientAuthority),
    );
    await this.#guest.write(`${folder}/kubelet.json`, JSON.stringify(configuration));
  }

  /** Starts it; its node is ready when this ends. */
  async start(signal: AbortSignal): Promise<void> {
    const { name } = this.#guest;
    const args = [
      ...[`--config=${folder}/kubelet.json`, `--kubeconfig=${folder}/kubelet.kubeconfig`],
      // Before Kubernetes 1.27 its configuration has no field for that.
      `--container-runtime-endpoint=${MachineRuntime.endpoint}`,
      ...[`--hostname-override=${name}`, `--node-ip=${guestAddress}`, "-v=2"],
    ];
    await this.#guest.sh(
      `setsid ${installed} ${args.map(quote).join(" ")} >>/var/log/kubelet.log 2>&1 </dev/null &`,
    );
    // The API may have the node for ready since before.
    await this.#guest.until(`ss -Hltn sport = :${kubeletPort} | grep -q .`, { limitSeconds: readySeconds });
    await until(`node ${name} to be ready`, () => this.#isReady(), {
      limitSeconds: readySeconds,
      everyMs: 500,
      signal,
      state: () => this.#guest.sh("tail -n 30 /var/log/kubelet.log"),
    });
  }

  /** SIGKILL; pods run on. */
  async kill(): Promise<void> {
    await this.#guest.sh("pkill -KILL -x kubelet");
  }

  async #isReady(): Promise<boolean> {
    const node = await this.#plane.api.find<Node>(`${paths.nodes}/${this.#guest.name}`);
    const isReady = node?.status.conditions?.some(({ type, status }) =>
      type === "Ready" && status === "True"
    );
    return isReady === true && (node?.spec.taints ?? []).length === 0;
  }
}

/** The defaults, with control groups of its own; what differs is that there is no systemd, no DNS and no kube-proxy. */
const configuration = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  port: kubeletPort,
  authentication: { x509: { clientCAFile: `${folder}/kubelet-clients.crt` } },
  cgroupDriver: "cgroupfs",
  makeIPTablesUtilChains: false,
  resolvConf: "",
  // How often it looks at each pod anew, and so when a volume grows under it: usually 1 minute.
  syncFrequency: "10s",
};
