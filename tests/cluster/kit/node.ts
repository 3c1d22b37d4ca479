import { join } from "node:path";
import type { Subject } from "../../support/parts.ts";
import type { ControlPlane } from "./control_plane.ts";
import { type Driver, driverName, makeNodeDriver } from "./driver.ts";
import { Kubelet } from "./kubelet.ts";
import { Registrar } from "./registrar.ts";
import type { Router } from "./router.ts";
import { Runtime } from "./runtime.ts";
import type { Tools } from "./tools.ts";
import { until } from "./waiting.ts";

/** What a node belongs to. */
export interface NodeContext {
  /** The cluster's folder. */
  readonly folder: string;
  readonly plane: ControlPlane;
  readonly tools: Tools;
  readonly router: Router;
  readonly subject: Subject;
}

/** One node: containerd, a kubelet, the driver's node service. */
export class ClusterNode {
  readonly name: string;
  readonly runtime: Runtime;
  readonly kubelet: Kubelet;
  readonly driver: Driver;
  readonly #registrar: Registrar;

  private constructor(
    name: string,
    runtime: Runtime,
    kubelet: Kubelet,
    driver: Driver,
    registrar: Registrar,
  ) {
    this.name = name;
    this.runtime = runtime;
    this.kubelet = kubelet;
    this.driver = driver;
    this.#registrar = registrar;
  }

  /**
   * Starts one; its CSINode lists the driver when this ends. What it has begun when it fails is for `removeTraces`.
   *
   * @param kubeletFolder name of the kubelet's folder
   */
  static async start(context: NodeContext, name: string, kubeletFolder: string, signal?: AbortSignal) {
    const { plane, tools, router, subject } = context;
    const folder = join(context.folder, name);
    const logs = join(plane.folder, "log");
    await Deno.mkdir(folder);
    const runtime = await Runtime.start(join(folder, "containerd"), logs, tools, signal);
    const root = join(folder, kubeletFolder);
    const place = { node: name, folder: root, runtimeEndpoint: runtime.endpoint, plane, tools };
    const kubelet = await Kubelet.prepare(place);
    const driver = await makeNodeDriver({ subject, folder, logs, router }, name, root);
    await driver.start(signal);
    const registrar = await Registrar.start(kubelet.pluginsFolder, driverName, driver.socket);
    const node = new ClusterNode(name, runtime, kubelet, driver, registrar);
    try {
      await kubelet.start(signal);
      await node.registered(1, signal);
      return node;
    } catch (error) {
      await node.stop();
      throw error;
    }
  }

  /** Waits until kubelets of this node have taken the driver so often. */
  async registered(times: number, signal?: AbortSignal): Promise<void> {
    await until(`the driver to be registered at ${this.name}`, () => {
      const [refusal] = this.#registrar.refusals;
      if (refusal !== undefined) {
        throw new Error(`the kubelet of ${this.name} refuses the driver: ${refusal}`);
      }
      return Promise.resolve(this.#registrar.registrations >= times);
    }, { limitSeconds: 60, ...(signal === undefined ? {} : { signal }) });
  }

  /** How often kubelets of this node have taken the driver. */
  get registrations(): number {
    return this.#registrar.registrations;
  }

  /** What its kubelet remembers of volumes: folders in which the driver's calls have placed something. */
  get stateFolder(): string {
    return join(this.kubelet.place.folder, "plugins", driverName, "state");
  }

  /** Ends its processes; pods are left to whoever ends what is left. */
  async stop(): Promise<readonly string[]> {
    await this.kubelet.stop();
    this.#registrar.stop();
    const problems = await this.driver.stop();
    await this.runtime.stop();
    return problems;
  }
}
