import { join } from "node:path";
import type { Subject } from "../../support/parts.ts";
import type { Api } from "./api.ts";
import { Chart, type ChartOptions } from "./chart.ts";
import { ControlPlane } from "./control_plane.ts";
import type { Supervised } from "./daemon.ts";
import type { Driver, DriverPlace } from "./driver.ts";
import { keepSettings, restoreSettings } from "./kernel_settings.ts";
import { ClusterNode } from "./node.ts";
import { accountKubeconfig, applyChart, installSnapshots } from "./deployment.ts";
import { fakeNode } from "./objects.ts";
import { Router, type RouterDoor } from "./router.ts";
import { Replica } from "./sidecars.ts";
import { startSnapshotController } from "./sidecars.ts";
import type { Tools } from "./tools.ts";
import { removeTraces } from "./traces.ts";
import { until } from "./waiting.ts";

/** Options of {@linkcode Cluster.start}. */
export interface ClusterOptions {
  /** Names of nodes with a kubelet, and of their kubelets' folders. */
  readonly nodes?: Readonly<Record<string, string>>;
  /** Names of nodes without a kubelet: volumes are attached to them, no pod runs. */
  readonly fakeNodes?: readonly string[];
  /** Arguments that are passed through values of the chart. */
  readonly chart?: Partial<ChartOptions>;
  /** The router's address and user. */
  readonly router?: RouterDoor;
  /** Installs the driver's objects instead of the rig, and returns them. */
  readonly install?: (location: Uninstalled) => Promise<Installed>;
  /** Whether controller and sidecars are started later: see {@linkcode Cluster.startController}. */
  readonly controllerLater?: boolean;
  /** How many controllers there are, each with its sidecars. @default {1} */
  readonly replicas?: number;
  /** How many of them run at first. @default {all} */
  readonly startedReplicas?: number;
}

/** A cluster without the driver. */
export interface Uninstalled {
  readonly folder: string;
  readonly plane: ControlPlane;
  readonly router: Router;
  readonly tools: Tools;
}

/** The result of an installation. */
export type Installed = Pick<DriverPlace, "chart" | "credentials">;

/** A cluster with the driver, a simulated router beside it, and everything of both in one folder. */
export class Cluster {
  readonly plane: ControlPlane;
  readonly chart: Chart;
  readonly router: Router;
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  /** The controllers, in the order in which they were started. */
  readonly replicas: readonly Replica[];
  readonly #startSnapshotController: () => Promise<void>;
  readonly #started: number | undefined;
  /** The index of the controller that served last, see {@linkcode Cluster.findServing}. */
  #serving = 0;

  private constructor(
    [plane, chart]: readonly [ControlPlane, Chart],
    router: Router,
    [replicas, started]: readonly [readonly Replica[], number | undefined],
    startSnapshotController: () => Promise<void>,
    nodes: ReadonlyMap<string, ClusterNode>,
  ) {
    this.plane = plane;
    this.chart = chart;
    this.router = router;
    this.replicas = replicas;
    this.#started = started;
    this.nodes = nodes;
    this.#startSnapshotController = startSnapshotController;
  }

  /** Starts everything, including driver and sidecars. `undo` gets the clean-up steps, the last first. */
  static async start(
    folder: string,
    { tools, subject }: { readonly tools: Tools; readonly subject: Subject },
    options: ClusterOptions,
    undo: (what: () => Promise<readonly string[] | void>) => void,
    signal: AbortSignal,
  ): Promise<Cluster> {
    await keepSettings(folder);
    undo(() => restoreSettings(folder));
    undo(() => removeTraces(folder));
    const nodeNames = Object.keys(options.nodes ?? {});
    const plane = await ControlPlane.prepare(folder, tools, nodeNames);
    const logs = join(folder, "log");
    const router = await Router.start(subject, folder, logs, signal, options.router);
    undo(() => router.stop());
    undo(() => plane.stop());
    await plane.start(signal);
    await installSnapshots(plane, tools);
    const install = options.install ?? ((location) => renderAndApply(location, options.chart ?? {}));
    const installed = await install({ folder, plane, router, tools });
    const { chart } = installed;
    for (const [path, object] of (options.fakeNodes ?? []).flatMap(fakeNode)) {
      await plane.api.create(path, object);
    }
    const kubeconfig = await accountKubeconfig(plane, chart.namespace, chart.controllerAccount);
    const location = { subject, folder, logs, router, ...installed, plane, tools, kubeconfig };
    const replicas: Replica[] = [];
    for (let number = 1; number <= (options.replicas ?? 1); number++) {
      const replica = await Replica.prepare(location, `controller-${number}`);
      undo(() => replica.stop());
      replicas.push(replica);
    }
    let snapshots: Supervised | undefined;
    undo(async () => await snapshots?.stop());
    const startSnapshots = async () => void (snapshots = await startSnapshotController(plane, tools));
    const context = { folder, plane, tools, router, subject, chart };
    const nodes = new Map<string, ClusterNode>();
    for (const [name, kubelet] of Object.entries(options.nodes ?? {})) {
      const node = await ClusterNode.prepare(context, name, kubelet);
      undo(() => node.stop());
      nodes.set(name, node);
    }
    const cluster = new Cluster(
      [plane, chart],
      router,
      [replicas, options.startedReplicas],
      startSnapshots,
      nodes,
    );
    if (options.controllerLater !== true) await cluster.startController(signal);
    for (const node of nodes.values()) await node.start(signal);
    return cluster;
  }

  /** Starts the controllers and their sidecars, if that was left for later; the first one leads. */
  async startController(signal: AbortSignal): Promise<void> {
    await this.#startSnapshotController();
    for (const replica of this.replicas.slice(0, this.#started)) {
      await replica.start(signal);
      await this.findServing(signal);
    }
  }

  /** The controller that served when it was last searched for. */
  get controller(): Driver {
    return this.replicas[this.#serving]!.driver;
  }

  /** Waits until a controller serves, and returns it. */
  async findServing(signal: AbortSignal, among: readonly Replica[] = this.replicas): Promise<Replica> {
    const serving = await until("a controller to serve", async () => {
      const serve = await Promise.all(among.map(({ driver }) => driver.isServing()));
      return among[serve.indexOf(true)];
    }, { limitSeconds: 60, everyMs: 50, signal });
    this.#serving = this.replicas.indexOf(serving);
    return serving;
  }

  /** Ends controllers and sidecars, as their pods would end. */
  async stopController(): Promise<readonly string[]> {
    return (await Promise.all(this.replicas.map((replica) => replica.stop()))).flat();
  }

  /** The API with all permissions. */
  get api(): Api {
    return this.plane.api;
  }

  /** A node with a kubelet, by its name. */
  node(name: string): ClusterNode {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(`there is no node ${name}`);
    return node;
  }

  /** How often sidecars have ended by themselves, and were started again. */
  get sidecarRestarts(): number {
    return this.replicas.reduce((sum, { sidecarRestarts }) => sum + sidecarRestarts, 0);
  }

  /** The programs of the control plane that have ended unexpectedly, with the end of their logs. */
  async fallen(): Promise<readonly string[]> {
    const reported = this.plane.fallen().map(async (one) => `${one.name} has ended:\n${await one.tail()}`);
    return await Promise.all(reported);
  }
}

/** Installs the driver as every suite does, with these arguments. */
export async function renderAndApply(
  { folder, plane, router, tools }: Uninstalled,
  options: Partial<ChartOptions>,
): Promise<Installed> {
  const chart = await Chart.render(tools.helm, folder, router, options);
  await applyChart(plane, chart);
  return { chart };
}
