import { join } from "node:path";
import { removeLeftovers } from "../../sanity/leftovers.ts";
import type { Subject } from "../../support/parts.ts";
import type { Chart } from "./chart.ts";
import type { ControlPlane } from "./control_plane.ts";
import { type Driver, driverName, makeNodeDriver } from "./driver.ts";
import { Kubelet } from "./kubelet.ts";
import type { Router } from "./router.ts";
import { Runtime } from "./runtime.ts";
import type { Tools } from "./tools.ts";
import { killProcesses } from "./traces.ts";
import { until } from "./waiting.ts";

/** What a node belongs to. */
export interface NodeContext {
  /** The cluster's folder. */
  readonly folder: string;
  readonly plane: ControlPlane;
  readonly tools: Tools;
  readonly router: Router;
  readonly subject: Subject;
  readonly chart: Chart;
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
    const { plane, tools, router, subject, chart } = context;
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
    const driver = await makeNodeDriver({ subject, folder, logs, router, chart }, name, root);
    return new ClusterNode(name, folder, [runtime, kubelet, driver]);
  }

  /** Starts all its parts; its CSINode lists the driver when this ends. */
  async start(signal?: AbortSignal): Promise<void> {
    await Promise.all([this.runtime.start(signal), this.driver.start(signal)]);
    await this.runtime.importImage(this.kubelet.place.tools.image);
    await this.kubelet.start(signal);
    await this.registered(1, signal);
  }

  /** Waits until kubelets of this node have taken the driver so often since it was started. */
  async registered(times: number, signal?: AbortSignal): Promise<void> {
    await until(`the driver to be registered at ${this.name}`, async () => {
      return await this.registrations() >= times;
    }, { limitSeconds: 60, ...(signal === undefined ? {} : { signal }) });
  }

  /** How often kubelets of this node have taken the driver since it was started. */
  registrations(): Promise<number> {
    return this.driver.metric('rds_csi_kubelet_registrations_total{outcome="ok"}');
  }

  /** Where the driver remembers what is staged here. */
  get stateFolder(): string {
    return join(this.kubelet.place.folder, "plugins", driverName, "state");
  }

  /** Ends its processes; pods are left to whoever ends what is left. */
  async stop(): Promise<readonly string[]> {
    await this.kubelet.stop();
    const problems = await this.driver.stop();
    await this.runtime.stop();
    return problems;
  }

  /**
   * Switches it off: all its processes, mounts and devices go, and what usually lies in memory; its files stay. `start`
   * switches it on again.
   *
   * @param backing where the router's files are, on which the devices of this node lie, and of no other one
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
