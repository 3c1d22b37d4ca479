import { join } from "node:path";
import { type CsiClients, dial } from "../../../src/csi/client.ts";
import { loadCsi } from "../../../src/csi/proto.ts";
import { systemClock } from "../../../src/host/clock.ts";
import { freePort, type Part, startPart, type Subject } from "../../support/parts.ts";
import { type Router, routerPassword, routerUser } from "./router.ts";

/** The driver's name in the API. */
export const driverName = "rds.csi.srvlab.io";

/** One `rds-csi serve` that can be killed and started again at the same socket. */
export class Driver {
  readonly socket: string;
  readonly #metricsPort: number;
  readonly #start: (metricsAddress: string) => Part;
  #part: Part | undefined;
  #clients: CsiClients | undefined;

  constructor(socket: string, start: (metricsAddress: string) => Part) {
    this.socket = socket;
    this.#metricsPort = freePort();
    this.#start = start;
  }

  /** Starts it; it serves when this ends. */
  async start(signal?: AbortSignal): Promise<void> {
    this.#part = this.#start(`127.0.0.1:${this.#metricsPort}`);
    await this.#part.ready(() => this.#serves(), 50, signal);
  }

  /** Clients of it, for calls beside those of the sidecars. */
  get clients(): CsiClients {
    return this.#clients ??= dial(loadCsi(), `unix://${this.socket}`, systemClock);
  }

  /** One of its metrics, as it is now; by its name and labels as they are printed. */
  async metric(name: string): Promise<number> {
    const url = `http://127.0.0.1:${this.#metricsPort}/metrics`;
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    const line = (await response.text()).split("\n").find((one) => one.startsWith(`${name} `));
    if (line === undefined) throw new Error(`the driver has no metric ${name}`);
    return Number(line.slice(name.length + 1));
  }

  /** SIGTERM; answers what was wrong with its end. */
  async stop(): Promise<readonly string[]> {
    this.#clients?.close();
    this.#clients = undefined;
    const part = this.#part;
    this.#part = undefined;
    return await part?.stop() ?? [];
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    this.#clients?.close();
    this.#clients = undefined;
    await this.#part?.kill();
    this.#part = undefined;
  }

  /** A socket that a killed one has left behind is there and answers nobody. */
  async #serves(): Promise<boolean> {
    try {
      using _connection = await Deno.connect({ transport: "unix", path: this.socket });
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.ConnectionRefused) {
        return false;
      }
      throw error;
    }
  }
}

/** Where a driver's log and the router are. */
export interface DriverPlace {
  readonly subject: Subject;
  /** For its socket and its files. */
  readonly folder: string;
  readonly logs: string;
  readonly router: Router;
}

/** The controller, which knows nodes of these names. */
export async function makeController(place: DriverPlace, nodes: readonly string[]): Promise<Driver> {
  const { subject, folder, logs, router } = place;
  const passwordFile = join(folder, "password");
  await Deno.writeTextFile(passwordFile, `${routerPassword}\n`, { mode: 0o600 });
  const socket = join(folder, "controller.sock");
  return new Driver(socket, (metricsAddress) =>
    startPart(subject, "serve", logs, [
      ...["--mode", "controller", "--endpoint", `unix://${socket}`, "--cluster-id", "cluster"],
      ...["--rds-address", "127.0.0.1", "--rds-port", `${router.sshPort}`, "--rds-user", routerUser],
      // The simulator makes a host key of its own at every start.
      ...["--rds-password-file", passwordFile, "--rds-insecure-skip-verify"],
      ...["--base-path", "/storage-pool/metal-csi", "--nvme-address", "127.0.0.1", "--unexport-grace", "0s"],
      ...["--metrics-address", metricsAddress],
      ...nodes.flatMap((node) => ["--known-node", node]),
    ]));
}

/** The driver of a node, whose kubelet has this folder and is told of it by the driver itself. */
export async function makeNodeDriver(place: DriverPlace, node: string, kubelet: string): Promise<Driver> {
  const { subject, logs, router } = place;
  const folder = join(kubelet, "plugins", driverName);
  await Deno.mkdir(folder, { recursive: true });
  const socket = join(folder, "csi.sock");
  return new Driver(socket, (metricsAddress) =>
    startPart(subject, "serve", logs, [
      ...["--mode", "node", "--endpoint", `unix://${socket}`, "--node-id", node],
      ...["--connector", "loop", "--loop-backing", router.backing, "--state-dir", join(folder, "state")],
      ...["--register", "--kubelet-path", kubelet, "--metrics-address", metricsAddress],
    ]));
}
