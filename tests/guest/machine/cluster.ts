import { join } from "node:path";
import type { Api } from "../../cluster/kit/api.ts";
import { ControlPlane } from "../../cluster/kit/control_plane.ts";
import type { Supervised } from "../../cluster/kit/daemon.ts";
import type { OlderKubernetes } from "../../cluster/kit/go_build.ts";
import { installSnapshots } from "../../cluster/kit/deployment.ts";
import { startSnapshotController } from "../../cluster/kit/sidecars.ts";
import { ensureTools, olderTools, type Tools } from "../../cluster/kit/tools.ts";
import { archivePath } from "../../image/release_files.ts";
import type { Guest } from "../kit/guest.ts";
import { hostOutput } from "../../../tools/host_command.ts";
import type { Bench } from "../kit/suite.ts";
import { kubeletPort } from "./kubelet.ts";
import { KubeletTunnel } from "./kubelet_tunnel.ts";
import { startDespiteLockup } from "./lockup.ts";
import { type MachineKind, MachineNode } from "./node.ts";
import { ensureRootDisk } from "./root_disk.ts";
import { type MachineRouter, type MakeRouter, routerOnHost } from "./router.ts";

/** A cluster with its control plane on the host, its nodes in guests, and a simulated router. */
export class MachineCluster {
  readonly folder: string;
  readonly tools: Tools;
  readonly plane: ControlPlane;
  readonly router: MachineRouter;
  readonly #tunnel: KubeletTunnel;
  readonly #nodes = new Map<string, MachineNode>();
  #snapshots: Supervised | undefined;

  private constructor(
    folder: string,
    tools: Tools,
    plane: ControlPlane,
    router: MachineRouter,
    tunnel: KubeletTunnel,
  ) {
    this.folder = folder;
    this.tools = tools;
    this.plane = plane;
    this.router = router;
    this.#tunnel = tunnel;
  }

  /**
   * Starts all but the nodes, which {@linkcode MachineCluster.join}.
   *
   * @param nodes their names
   * @param makeRouter by default it is on the host
   * @param kubernetes which one control plane and nodes have, if not the newest
   */
  static async start(
    bench: Bench,
    nodes: readonly string[],
    makeRouter: MakeRouter = routerOnHost,
    kubernetes?: OlderKubernetes,
  ): Promise<MachineCluster> {
    const newest = await toolsFor(bench);
    const tools = kubernetes === undefined
      ? newest
      : await olderTools(newest, kubernetes, (line) => bench.report.say(line), bench.signal);
    const folder = join(bench.folder, "cluster");
    await Deno.mkdir(folder);
    const tunnel = await KubeletTunnel.serve(folder);
    const plane = await ControlPlane.prepare(folder, tools, nodes, tunnel.apiServerFlags);
    await hostOutput("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", keyIn(folder)]);
    const router = await makeRouter(bench, folder, `${keyIn(folder)}.pub`);
    const cluster = new MachineCluster(folder, tools, plane, router, tunnel);
    try {
      await plane.start(bench.signal);
      await installSnapshots(plane, tools);
      cluster.#snapshots = await startSnapshotController(plane, tools);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** Makes a node of a guest that was booted for it; the node is ready when this ends. */
  async join(bench: Bench, guest: Guest, kind: MachineKind): Promise<void> {
    const node = new MachineNode(guest, this.plane, kind, this.tools.program("kubelet"));
    this.#nodes.set(guest.name, node);
    this.#tunnel.lead(guest.name, guest.forwarded(kubeletPort));
    await startDespiteLockup(bench, guest, () => node.start(bench.signal));
  }

  /** The router's key for the driver's user, as a path. */
  get key(): string {
    return keyIn(this.folder);
  }

  /** The API, as somebody who may do everything. */
  get api(): Api {
    return this.plane.api;
  }

  /** All nodes, in the order in which they were booted. */
  get nodes(): readonly MachineNode[] {
    return [...this.#nodes.values()];
  }

  /** A node by its name. */
  node(name: string): MachineNode {
    const node = this.#nodes.get(name);
    if (node === undefined) throw new Error(`there is no node ${name}`);
    return node;
  }

  /** What of the control plane has ended although nobody ended it. */
  async fallen(): Promise<readonly string[]> {
    return await Promise.all(this.plane.fallen().map(async (one) => `${one.name}:\n${await one.tail()}`));
  }

  /** Ends what runs on the host; answers what was wrong with the router's end. */
  async stop(): Promise<readonly string[]> {
    await this.#snapshots?.stop();
    await this.plane.stop();
    await this.#tunnel.close();
    return await this.router.stop();
  }
}

/** The root that machines start from, as a file to be copied. */
export async function machineDisk(bench: Bench): Promise<string> {
  return await ensureRootDisk(
    await toolsFor(bench),
    archivePath("amd64"),
    (line) => bench.report.say(line),
  );
}

function toolsFor(bench: Bench): Promise<Tools> {
  return ensureTools((line) => bench.report.say(line), bench.signal);
}

function keyIn(folder: string): string {
  return join(folder, "rds-csi-key");
}
