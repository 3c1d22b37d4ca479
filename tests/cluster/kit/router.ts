import { join } from "node:path";
import { hostOutput } from "../../guest/kit/host_command.ts";
import { freePort, type Part, startPart, type Subject } from "../../support/parts.ts";

/** Who may log in, and with which password. */
export const routerUser = "csi";
export const routerPassword = "cluster";

/** The file system that volumes lie in: sparse, so that its size costs nothing. */
const poolBytes = 64 * 2 ** 30;

/** Where the router listens, and who may log in. */
export interface RouterDoor {
  readonly address: string;
  readonly sshPort: number;
  /** The pool that it has, as `rds-csi simulator` is told. */
  readonly pool: string;
  /** Flags of `rds-csi simulator` that say who. */
  readonly user: readonly string[];
  /** Port of 127.0.0.1 at which it serves NVMe/TCP itself; by default loop devices reach its volumes. */
  readonly nvmePort?: number;
}

/** The simulated router on a Btrfs of its own, so that snapshots are real ones. */
export class Router {
  readonly sshPort: number;
  readonly backing: string;
  readonly part: Part;
  readonly #control: string;

  private constructor(part: Part, pool: string, sshPort: number, controlPort: number) {
    this.part = part;
    this.backing = join(pool, "router");
    this.sshPort = sshPort;
    this.#control = `http://127.0.0.1:${controlPort}`;
  }

  /** Starts it in `folder`, with its log in `logs`. */
  static async start(
    subject: Subject,
    folder: string,
    logs: string,
    signal?: AbortSignal,
    door: RouterDoor = doorTo("storage-pool:4T:btrfs"),
  ): Promise<Router> {
    const { address, sshPort, nvmePort } = door;
    const pool = await makePool(folder, nvmePort === undefined);
    const exporter = nvmePort === undefined
      ? ["--exporter", "loop"]
      : ["--exporter", "tcp", "--nvme-port", `${nvmePort}`];
    const controlPort = freePort();
    const part = startPart(subject, "simulator", logs, [
      ...[
        "--listen",
        address,
        "--ssh-port",
        `${sshPort}`,
        "--control-port",
        `${controlPort}`,
        "--backing",
        join(pool, "router"),
      ],
      ...["--pool", door.pool, ...exporter, "--timing-scale", "0"],
      // The controllers are told so: volumes grow under their pods.
      ...["--behaviour", "grow=live"],
      ...door.user,
    ]);
    const router = new Router(part, pool, sshPort, controlPort);
    try {
      await part.ready(() => router.#serves(), 50, signal);
      return router;
    } catch (error) {
      await part.kill();
      throw error;
    }
  }

  /** Its host key as an OpenSSH public key; it makes a new one at every start. */
  async hostKey(): Promise<string> {
    const line = (await this.part.printed()).split("\n").find((one) => one.includes('"hostKey"'));
    if (line === undefined) throw new Error("The simulator has not printed its host key");
    return (JSON.parse(line) as { readonly hostKey: string }).hostKey;
  }

  /** Asks its control port, as `/state`. */
  async control<T>(path: string, init: RequestInit = {}): Promise<T> {
    const response = await fetch(this.#control + path, { signal: AbortSignal.timeout(60_000), ...init });
    const text = await response.text();
    if (!response.ok) throw new Error(`The simulator answers ${path} with ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  }

  /** Router commands so far. */
  async commands(): Promise<number> {
    return (await this.control<{ readonly execs: number }>("/count")).execs;
  }

  /** What it holds against its client. */
  violations(): Promise<readonly unknown[]> {
    return this.control("/violations");
  }

  /** Stops it; answers what was wrong. Its pool stays mounted, as there may be devices on it. */
  stop(): Promise<readonly string[]> {
    return this.part.stop();
  }

  async #serves(): Promise<boolean> {
    try {
      await this.control("/health");
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false; // Nobody listens yet.
      throw error;
    }
  }
}

/** A port of its own and the rig's user. @param pool as `rds-csi simulator` is told */
export function doorTo(pool: string): RouterDoor {
  const user = ["--user", routerUser, "--password", routerPassword];
  return { address: "127.0.0.1", sshPort: freePort(), pool, user };
}

/** @param mounted whether it is a Btrfs: without one, snapshots are copies of files */
async function makePool(folder: string, mounted: boolean): Promise<string> {
  const image = join(folder, "pool.img");
  const pool = join(folder, "pool");
  if (!mounted) {
    await Deno.mkdir(pool);
    return pool;
  }
  await Deno.writeFile(image, new Uint8Array());
  await Deno.truncate(image, poolBytes);
  await hostOutput("mkfs.btrfs", ["--quiet", image]);
  await Deno.mkdir(pool);
  await hostOutput("mount", ["-o", "loop", image, pool]);
  return pool;
}
