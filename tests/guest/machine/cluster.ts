import { join } from "node:path";
import type { Api } from "../../cluster/kit/api.ts";
import { ControlPlane } from "../../cluster/kit/control_plane.ts";
import type { Supervised } from "../../cluster/kit/daemon.ts";
import { installSnapshots } from "../../cluster/kit/deployment.ts";
import { Router } from "../../cluster/kit/router.ts";
import { startSnapshotController } from "../../cluster/kit/sidecars.ts";
import { ensureTools, type Tools } from "../../cluster/kit/tools.ts";
import { archivePath } from "../../image/release_files.ts";
import { binary, freePort } from "../../support/parts.ts";
import { hostOutput, isFile } from "../kit/host_command.ts";
import type { Bench } from "../kit/suite.ts";
import { MachineNode, machineOptions } from "./node.ts";
import { ensureRootDisk } from "./root_disk.ts";

/** A cluster with its control plane and a simulated router on the host, and its nodes in guests. */
export class MachineCluster {
  readonly folder: string;
  readonly tools: Tools;
  readonly plane: ControlPlane;
  readonly router: Router;
  /** The port of the host's 127.0.0.1 at which the router's volumes are. */
  readonly nvmePort: number;
  readonly #nodes = new Map<string, MachineNode>();
  #snapshots: Supervised | undefined;

  private constructor(
    folder: string,
    tools: Tools,
    plane: ControlPlane,
    [router, nvmePort]: [Router, number],
  ) {
    this.folder = folder;
    this.tools = tools;
    this.plane = plane;
    this.router = router;
    this.nvmePort = nvmePort;
  }

  /** Starts all but the nodes, which {@linkcode MachineCluster.boot} starts. @param nodes their names */
  static async start(bench: Bench, nodes: readonly string[]): Promise<MachineCluster> {
    const tools = await ensureTools((line) => bench.report.say(line), bench.signal);
    const folder = join(bench.folder, "cluster");
    const plane = await ControlPlane.prepare(folder, tools, nodes);
    await hostOutput("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", keyIn(folder)]);
    const nvmePort = freePort();
    const router = await Router.start(
      isFile(binary) ? "binary" : "sources",
      folder,
      join(folder, "log"),
      bench.signal,
      {
        address: "127.0.0.1",
        sshPort: freePort(),
        pool: "storage-pool:4T:btrfs",
        user: ["--user", "rds-csi", "--authorized-key", `${keyIn(folder)}.pub`],
        nvmePort,
      },
    );
    const cluster = new MachineCluster(folder, tools, plane, [router, nvmePort]);
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

  /** Boots a guest as a node; it is ready when this ends. */
  async boot(bench: Bench, name: string): Promise<MachineNode> {
    const disk = await ensureRootDisk(this.tools, archivePath("amd64"), (line) => bench.report.say(line));
    const node = new MachineNode(await bench.guest(machineOptions(name, disk)), this.plane);
    this.#nodes.set(name, node);
    await node.start(bench.signal);
    return node;
  }

  /** The router's key for the driver's user, as a path. */
  get key(): string {
    return keyIn(this.folder);
  }

  /** The API, as somebody who may do everything. */
  get api(): Api {
    return this.plane.api;
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
    return await this.router.stop();
  }
}

function keyIn(folder: string): string {
  return join(folder, "rds-csi-key");
}
