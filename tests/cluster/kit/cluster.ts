import { join } from "node:path";
import type { Subject } from "../../support/parts.ts";
import type { Api } from "./api.ts";
import { Chart, type ChartOptions, type PlaceValues } from "./chart.ts";
import { ControlPlane } from "./control_plane.ts";
import type { Supervised } from "./daemon.ts";
import type { Driver, DriverPlace } from "./driver.ts";
import { keepSettings, restoreSettings } from "./kernel_settings.ts";
import { ClusterNode } from "./node.ts";
import { accountKubeconfig, applyChart, installSnapshots } from "./deployment.ts";
import { fakeNode } from "./objects.ts";
import { doorTo, Router, type RouterDoor, routerPassword } from "./router.ts";
import { Replica, startSnapshotController } from "./sidecars.ts";
import type { Tools } from "./tools.ts";
import { removeTraces } from "./traces.ts";
import { until } from "./waiting.ts";

/** Options of {@linkcode Cluster.start}. */
export interface ClusterOptions {
  /** Names of nodes with a kubelet, and of their kubelets' folders. */
  readonly nodes?: Readonly<Record<string, string>>;
  /** Names of nodes without a kubelet: volumes are attached to them, no pod runs. */
  readonly fakeNodes?: readonly string[];
  /** The router's address and user. */
  readonly router?: RouterDoor;
  /**
   * Pools by the names of nodes with a kubelet, as `rds-csi simulator` is told: each such node has a router of its own, which
   * it alone reaches. By default all reach one router.
   */
  readonly places?: Readonly<Record<string, string>>;
  /** Installs the driver's objects in the place of the rig, and answers them. */
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
  /** The only router, or the first. */
  readonly router: Router;
  /** The routers by their places; the only one has no name. */
  readonly routers: ReadonlyMap<string, Router>;
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  /** The controllers, in the order in which they were started. */
  readonly replicas: readonly Replica[];
  readonly #startSnapshotController: () => Promise<void>;
  readonly #started: number | undefined;
  /** The index of the controller that served last, see {@linkcode Cluster.findServing}. */
  #serving = 0;

  private constructor(
    [plane, chart]: readonly [ControlPlane, Chart],
    routers: ReadonlyMap<string, Router>,
    [replicas, started]: readonly [readonly Replica[], number | undefined],
    startSnapshotController: () => Promise<void>,
    nodes: ReadonlyMap<string, ClusterNode>,
  ) {
    this.plane = plane;
    this.chart = chart;
    this.routers = routers;
    this.router = [...routers.values()][0]!;
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
    const routers = await startRouters(subject, folder, options, undo, signal);
    const router = [...routers.values()][0]!;
    undo(() => plane.stop());
    await plane.start(signal);
    await installSnapshots(plane, tools);
    const places = options.places === undefined ? {} : { places: await placesOf(folder, routers) };
    const install = options.install ??
      ((location) => renderAndApply(location, places));
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
      const place = routers.has(name) ? name : undefined;
      const own = { ...context, place, router: routers.get(name) ?? router };
      const node = await ClusterNode.prepare(own, name, kubelet);
      undo(() => node.stop());
      nodes.set(name, node);
    }
    const cluster = new Cluster(
      [plane, chart],
      routers,
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

/** Starts the only router, or one for each place. */
async function startRouters(
  subject: Subject,
  folder: string,
  { places = { "": "" }, router: door }: ClusterOptions,
  undo: (what: () => Promise<readonly string[]>) => void,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Router>> {
  const routers = new Map<string, Router>();
  const logs = join(folder, "log");
  for (const [place, pool] of Object.entries(places)) {
    const own = place === "" ? folder : join(folder, `router-${place}`);
    await Deno.mkdir(own, { recursive: true });
    const router = await Router.start(subject, own, logs, signal, place === "" ? door : doorTo(pool));
    undo(() => router.stop());
    routers.set(place, router);
  }
  return routers;
}

/** The routers as values of the chart, with their password in a file. */
async function placesOf(
  folder: string,
  routers: ReadonlyMap<string, Router>,
): Promise<readonly PlaceValues[]> {
  const passwordFile = join(folder, "routers-password");
  await Deno.writeTextFile(passwordFile, `${routerPassword}\n`, { mode: 0o600 });
  const all = [...routers].map(async ([name, router]) => ({
    name,
    port: router.sshPort,
    hostKeys: [await router.hostKey()],
    passwordFile,
  }));
  return await Promise.all(all);
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
