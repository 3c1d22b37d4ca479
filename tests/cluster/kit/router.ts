import { join } from "node:path";
import { hostOutput } from "../../../tools/host_command.ts";
import { freePort, type Part, startPart, type Subject } from "../../support/parts.ts";

/** The router's user and password. */
export const routerUser = "csi";
export const routerPassword = "cluster";

/** The size of the volumes' file system: sparse, so that it costs nothing. */
const poolBytes = 64 * 2 ** 30;

/** The router's address and user. */
export interface RouterDoor {
  readonly address: string;
  readonly sshPort: number;
  /** Its pool, in the form of `rds-csi simulator`'s flag. */
  readonly pool: string;
  /** Flags of `rds-csi simulator` for the user. */
  readonly user: readonly string[];
  /** Port of its address on which it serves NVMe/TCP itself; by default loop devices are used. */
  readonly nvmePort?: number;
  /** More flags of `rds-csi simulator`. */
  readonly flags?: readonly string[];
}

/** The simulated router on its own Btrfs, so that snapshots are real ones. */
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
      : ["--exporter", "tcp", "--nvme-listen", address, "--nvme-port", `${nvmePort}`];
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
      // The controllers know this, so volumes grow under their pods.
      ...["--behaviour", "grow=live"],
      ...door.user,
      ...door.flags ?? [],
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

  /** Its client's violations. */
  violations(): Promise<readonly unknown[]> {
    return this.control("/violations");
  }

  /** Stops it; returns the problems. Its pool stays mounted, because there may be devices on it. */
  stop(): Promise<readonly string[]> {
    return this.part.stop();
  }

  async #serves(): Promise<boolean> {
    try {
      await this.control("/health");
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false; // It does not listen yet.
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
