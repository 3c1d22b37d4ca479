import { join } from "node:path";
import type { Subject } from "../../support/parts.ts";
import type { Api } from "./api.ts";
import { Chart, type ChartOptions } from "./chart.ts";
import { ControlPlane } from "./control_plane.ts";
import { type Driver, makeController } from "./driver.ts";
import { keepSettings, restoreSettings } from "./kernel_settings.ts";
import { ClusterNode } from "./node.ts";
import { accountKubeconfig, applyChart, installSnapshots } from "./deployment.ts";
import { fakeNode } from "./objects.ts";
import { Router } from "./router.ts";
import { Sidecars } from "./sidecars.ts";
import type { Tools } from "./tools.ts";
import { removeTraces } from "./traces.ts";

/** Options of {@linkcode Cluster.start}. */
export interface ClusterOptions {
  /** Names of nodes with a kubelet, and of their kubelets' folders. */
  readonly nodes?: Readonly<Record<string, string>>;
  /** Names of nodes without one: volumes are attached to them, no pod runs. */
  readonly fakeNodes?: readonly string[];
  /** Arguments that are given by values of the chart. */
  readonly chart?: Partial<ChartOptions>;
  /** Whether controller and sidecars are not started yet: see {@linkcode Cluster.startController}. */
  readonly controllerLater?: boolean;
}

/** A cluster with the driver in it, a simulated router beside it, and everything of both in one folder. */
export class Cluster {
  readonly plane: ControlPlane;
  readonly chart: Chart;
  readonly router: Router;
  readonly controller: Driver;
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  readonly #sidecars: Sidecars;

  private constructor(
    [plane, chart]: readonly [ControlPlane, Chart],
    router: Router,
    controller: Driver,
    sidecars: Sidecars,
    nodes: ReadonlyMap<string, ClusterNode>,
  ) {
    this.plane = plane;
    this.chart = chart;
    this.router = router;
    this.controller = controller;
    this.nodes = nodes;
    this.#sidecars = sidecars;
  }

  /** Starts everything, driver and sidecars included. `undo` gets what is to be done at the end, the last first. */
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
    const router = await Router.start(subject, folder, logs, signal);
    undo(() => router.stop());
    undo(() => plane.stop());
    const chart = await Chart.render(tools.helm, folder, router, options.chart ?? {});
    await plane.start(signal);
    await installSnapshots(plane, tools);
    await applyChart(plane, chart);
    for (const [path, object] of (options.fakeNodes ?? []).flatMap(fakeNode)) {
      await plane.api.create(path, object);
    }
    const kubeconfig = await accountKubeconfig(plane, chart.namespace, chart.controllerAccount);
    const controller = await makeController({ subject, folder, logs, router, chart }, kubeconfig);
    undo(() => controller.stop());
    const sidecars = new Sidecars({ plane, tools, chart, socket: controller.socket, kubeconfig });
    undo(() => sidecars.stop());
    const context = { folder, plane, tools, router, subject, chart };
    const nodes = new Map<string, ClusterNode>();
    for (const [name, kubelet] of Object.entries(options.nodes ?? {})) {
      const node = await ClusterNode.prepare(context, name, kubelet);
      undo(() => node.stop());
      nodes.set(name, node);
    }
    const cluster = new Cluster([plane, chart], router, controller, sidecars, nodes);
    if (options.controllerLater !== true) await cluster.startController(signal);
    for (const node of nodes.values()) await node.start(signal);
    return cluster;
  }

  /** Starts the controller and its sidecars, where that was left for later. */
  async startController(signal: AbortSignal): Promise<void> {
    await this.controller.start(signal);
    await this.#sidecars.start();
  }

  /** The API, as somebody who may do everything. */
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
    return this.#sidecars.restarts;
  }

  /** What of the control plane has ended although nobody ended it, with the end of its log. */
  async fallen(): Promise<readonly string[]> {
    const told = this.plane.fallen().map(async (one) => `${one.name} has ended:\n${await one.tail()}`);
    return await Promise.all(told);
  }
}
