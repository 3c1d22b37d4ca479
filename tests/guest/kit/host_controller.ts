import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { lines } from "../../../tools/lines.ts";
import { type CsiClients, dial } from "../../../src/csi/server/client.ts";
import { loadCsi } from "../../../src/csi/server/proto.ts";
import { systemClock } from "../../../src/host/clock.ts";
import { routerPassword, routerUser, sshPort } from "./driver.ts";
import type { Guest } from "./guest.ts";

const binary = fileURLToPath(new URL("../../../dist/rds-csi", import.meta.url));
/** How long it may take until it serves, in milliseconds. */
const startMs = 60_000;

/** How a {@linkcode HostController} is started. */
export interface HostControllerOptions {
  /** The guest with the simulated router, with {@linkcode sshPort} among its ports. */
  readonly router: Guest;
  /** The address of the router's exports for nodes. */
  readonly nvmeAddress: string;
  readonly nodeIds: readonly string[];
  /** More flags of `rds-csi serve`. */
  readonly flags?: readonly string[];
}

/**
 * The executable as a controller on the host, from which it reaches the router outside the network of the guests: it
 * goes on when any of them is disconnected, frozen or without power.
 */
export class HostController {
  readonly clients: CsiClients;
  readonly #child: Deno.ChildProcess;
  readonly #lines: string[];

  private constructor(child: Deno.ChildProcess, printed: string[], clients: CsiClients) {
    this.#child = child;
    this.#lines = printed;
    this.clients = clients;
  }

  /** Starts it; its socket and password are in `folder`. */
  static async start(folder: string, options: HostControllerOptions): Promise<HostController> {
    const socket = join(folder, "csi.sock");
    const passwordFile = join(folder, "password");
    await Deno.writeTextFile(passwordFile, routerPassword, { mode: 0o600 });
    const child = new Deno.Command("setpriv", {
      // The kernel kills it together with this process, however that ends.
      args: ["--pdeathsig", "KILL", binary, "serve", "--mode", "controller", "--endpoint", `unix://${socket}`]
        .concat(["--rds-address", "127.0.0.1", "--rds-port", `${options.router.forwarded(sshPort)}`])
        .concat(["--rds-user", routerUser, "--rds-password-file", passwordFile, "--rds-insecure-skip-verify"])
        .concat(["--nvme-address", options.nvmeAddress, "--cluster-id", "guest", "--metrics-address="])
        .concat(options.nodeIds.flatMap((id) => ["--known-node", id]), options.flags ?? []),
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const printed: string[] = [];
    const serving = Promise.withResolvers<boolean>();
    void hear(child.stderr, printed, serving);
    const timer = setTimeout(() => serving.resolve(false), startMs);
    const serves = await serving.promise;
    clearTimeout(timer);
    if (serves) return new HostController(child, printed, dial(loadCsi(), `unix://${socket}`, systemClock));
    child.kill("SIGKILL");
    throw new Error(`The controller does not serve:\n${printed.join("\n")}`);
  }

  /** The end of its output. */
  tail(count = 30): string {
    return this.#lines.slice(-count).join("\n");
  }

  /** Its whole output, as lines. */
  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Sends SIGTERM; throws when it does not end properly. */
  async stop(): Promise<void> {
    this.clients.close();
    try {
      this.#child.kill("SIGTERM");
    } catch {
      // It has ended, and its status shows how.
    }
    const { code } = await this.#child.status;
    if (code !== 0) throw new Error(`The controller ended with ${code}:\n${this.tail()}`);
  }
}

async function hear(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  printed: string[],
  serving: PromiseWithResolvers<boolean>,
): Promise<void> {
  for await (const line of lines(stream)) {
    printed.push(line);
    if (line.includes('"serving"')) serving.resolve(true);
  }
  serving.resolve(false);
}
