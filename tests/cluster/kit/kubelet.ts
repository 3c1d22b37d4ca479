import { join } from "node:path";
import { freePort } from "../../support/parts.ts";
import type { ControlPlane } from "./control_plane.ts";
import { Daemon } from "./daemon.ts";
import { type Node, paths } from "./objects.ts";
import type { Tools } from "./tools.ts";
import { until } from "./waiting.ts";

/** How long it may take until its node is ready, in seconds. */
const readySeconds = 120;

/** The folder of a kubelet, and its connections. */
export interface KubeletPlace {
  readonly node: string;
  /** Its root folder; paths of sockets in it may have at most 107 characters. */
  readonly folder: string;
  readonly runtimeEndpoint: string;
  readonly plane: ControlPlane;
  readonly tools: Tools;
}

/** A kubelet that can be ended and started again. */
export class Kubelet {
  readonly location: KubeletPlace;
  readonly #configFile: string;
  #daemon: Daemon | undefined;

  private constructor(location: KubeletPlace, configFile: string) {
    this.location = location;
    this.#configFile = configFile;
  }

  /** Prepares one; `start` starts it. */
  static async prepare(location: KubeletPlace): Promise<Kubelet> {
    await Deno.mkdir(join(location.folder, "plugins_registry"), { recursive: true });
    const file = `${location.folder}.json`;
    await Deno.writeTextFile(file, JSON.stringify(configuration(location)));
    return new Kubelet(location, file);
  }

  /** Starts it, and waits until its node is ready. */
  async start(signal?: AbortSignal): Promise<void> {
    const { node, folder, plane, tools } = this.location;
    this.#daemon = Daemon.start(`kubelet-${node}`, [
      tools.program("kubelet"),
      `--config=${this.#configFile}`,
      `--kubeconfig=${await plane.kubeconfig(`system:node:${node}`)}`,
      ...[`--root-dir=${folder}`, `--cert-dir=${join(folder, "pki")}`, `--hostname-override=${node}`, "-v=2"],
    ], { folder: join(plane.folder, "log") });
    await until(`node ${node} to be ready`, async () => {
      if (!this.#daemon?.isRunning) throw new Error(`the kubelet ended:\n${await this.#daemon?.tail()}`);
      const found = await plane.api.find<Node>(`${paths.nodes}/${node}`);
      const isReady = found?.status.conditions?.some(({ type, status }) =>
        type === "Ready" && status === "True"
      );
      const blocking = found?.spec.taints?.filter(({ key }) => key !== "node.kubernetes.io/unschedulable") ??
        [];
      return isReady === true && blocking.length === 0;
    }, { limitSeconds: readySeconds, ...(signal === undefined ? {} : { signal }) });
  }

  /** Sends SIGTERM; pods run on. */
  async stop(): Promise<void> {
    await this.#daemon?.stop();
  }

  /** Sends SIGKILL; pods run on. */
  async kill(): Promise<void> {
    await this.#daemon?.kill();
  }
}

function configuration({ folder, runtimeEndpoint, plane }: KubeletPlace) {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    containerRuntimeEndpoint: runtimeEndpoint,
    port: freePort(),
    readOnlyPort: 0,
    healthzPort: 0,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: false },
      x509: { clientCAFile: plane.certificates.kubeletClientAuthority },
    },
    authorization: { mode: "Webhook" },
    // It manages no control groups of its own, because this machine has other users.
    failCgroupV1: false,
    cgroupDriver: "cgroupfs",
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    makeIPTablesUtilChains: false,
    oomScoreAdj: 0,
    resolvConf: "",
    podLogsDir: `${folder}.logs`,
    volumePluginDir: `${folder}.flex`,
    // A nearly full machine must not cause the eviction of the tests' pods.
    evictionHard: {
      "memory.available": "1Mi",
      "nodefs.available": "0%",
      "imagefs.available": "0%",
      "nodefs.inodesFree": "0%",
    },
    imageGCHighThresholdPercent: 100,
    localStorageCapacityIsolation: false,
    maxPods: 200,
    // The tests wait for what is usually checked once a minute.
    volumeStatsAggPeriod: "10s",
    syncFrequency: "3s",
    nodeStatusUpdateFrequency: "5s",
    nodeLeaseDurationSeconds: 12,
    kubeAPIQPS: 100,
    kubeAPIBurst: 200,
  };
}
