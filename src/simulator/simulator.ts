import { join } from "node:path";
import { systemClock } from "../host/clock.ts";
import { systemRandom } from "../host/random.ts";
import type { Clock, Random } from "../volume/ports.ts";
import { stoppableClock } from "./clock.ts";
import { Console } from "./console/console.ts";
import { ControlServer } from "./control/server.ts";
import { Faults } from "./faults.ts";
import type { Knobs } from "./knobs.ts";
import { makeMenus } from "./menu/menus.ts";
import type { Backing } from "./model/backing.ts";
import { DirectoryBacking } from "./model/directory_backing.ts";
import { plainDisk } from "./model/disk.ts";
import { type Exporter, noExporter } from "./model/exporter.ts";
import { LoopExporter } from "./model/loop_exporter.ts";
import { MemoryBacking } from "./model/memory_backing.ts";
import { type PoolOptions, Router } from "./model/router.ts";
import { getProfile, profiles } from "./profile.ts";
import type { Simulation } from "./simulation.ts";
import type { ConnectionService } from "./ssh/connection.ts";
import { generateHostKey, readHostKey } from "./ssh/host_key.ts";
import { SshService } from "./ssh/server.ts";
import type { User } from "./ssh/users.ts";
import { handshakeSpan, Timing } from "./timing.ts";
import { Journal } from "./watch/journal.ts";
import { Violations } from "./watch/violations.ts";

/** How a simulator is set up. */
export interface SimulatorOptions {
  /** Address of the SSH port. @default {"127.0.0.1"} */
  readonly host?: string;
  /** 0 takes any free one. @default {0} */
  readonly sshPort?: number;
  /** Address of the control port. Whoever reaches it owns the router. @default {"127.0.0.1"} */
  readonly controlHost?: string;
  /** 0 takes any free one. @default {0} */
  readonly controlPort?: number;
  /** @default {[{ name: "admin", password: "admin" }]} */
  readonly users?: readonly User[];
  /** Private key in PEM or OpenSSH format; without one an RSA-2048 key is made. */
  readonly hostKey?: string;
  /** Name of a profile. @default {"ros-7.24"} */
  readonly profile?: string;
  /** On top of the profile's. */
  readonly knobs?: Partial<Knobs>;
  /** 1 takes the time that a real router takes, 0 none. @default {1} */
  readonly timingScale?: number;
  /** Folder for real sparse files; without one everything is in memory. */
  readonly backingDirectory?: string;
  /** `loop` links exported disks in `<backingDirectory>/exports`. @default {"none"} */
  readonly exporter?: "none" | "loop";
  /** Where its client may make files, with leading slash. @default {["/storage-pool/metal-csi"]} */
  readonly basePaths?: readonly string[];
  /** @default {[{ name: "storage-pool" }]} */
  readonly pools?: readonly PoolOptions[];
  /** Disks of 1 GiB that are there from the start, below the first base path. @default {0} */
  readonly seedDisks?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** A running simulator. */
export interface Simulator extends AsyncDisposable {
  readonly sshPort: number;
  /** Without slash at the end. */
  readonly controlUrl: string;
  /** The host key as OpenSSH writes it: `ssh-rsa AAAA…`. */
  readonly hostKeyPublic: string;
  /** The router's state, for tests in the same process. */
  readonly model: Router;
  /** What the router was asked. */
  readonly journal: Journal;
  /** What its client did wrong. */
  readonly violations: Violations;
  /** The faults that wait. */
  readonly faults: Faults;
  /** Stops both ports and withdraws every export. Backing files stay, unless `removeFiles`. */
  close(options?: { readonly removeFiles?: boolean }): Promise<void>;
}

const seedBytes = 1n << 30n;

/**
 * Starts a simulated router.
 *
 * @throws {RangeError} when an option makes no sense.
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const stop = new AbortController();
  const clock = stoppableClock(options.clock ?? systemClock, stop.signal);
  const hostKey = options.hostKey === undefined ? generateHostKey() : readHostKey(options.hostKey);
  const router = makeRouter(options, clock);
  const service = makeService(options, router);
  const ssh = new SshService(service, hostKey);
  const simulation: Simulation = { ...service, menus: makeMenus(router), ssh };
  const sshPort = await ssh.listen(options.host ?? "127.0.0.1", options.sshPort ?? 0);
  let control: ControlServer;
  try {
    control = new ControlServer(simulation, options.controlHost ?? "127.0.0.1", options.controlPort ?? 0);
  } catch (error) {
    await ssh.close();
    throw error;
  }
  const close = async ({ removeFiles = false } = {}) => {
    if (stop.signal.aborted) return;
    stop.abort(new Error("The simulator is closed."));
    await Promise.all([ssh.close(), control.close()]);
    router.exports.clear();
    if (removeFiles && options.backingDirectory !== undefined) {
      await Deno.remove(options.backingDirectory, { recursive: true });
    }
  };
  return {
    sshPort,
    controlUrl: control.url,
    hostKeyPublic: hostKey.publicLine,
    model: router,
    journal: service.journal,
    violations: service.violations,
    faults: service.faults,
    close,
    [Symbol.asyncDispose]: () => close(),
  };
}

const defaultBasePath = "/storage-pool/metal-csi";

function makeService(options: SimulatorOptions, router: Router): ConnectionService {
  const timing = new Timing(options.timingScale ?? 1, router.random);
  return {
    clock: router.clock,
    router,
    console: new Console(router, timing),
    journal: new Journal(router.clock),
    violations: new Violations(router.clock),
    faults: new Faults(),
    basePaths: options.basePaths ?? [defaultBasePath],
    users: options.users ?? [{ name: "admin", password: "admin" }],
    async handshake() {
      const ms = timing.draw(handshakeSpan);
      if (ms > 0) await router.clock.sleep(ms);
    },
  };
}

function makeRouter(options: SimulatorOptions, clock: Clock): Router {
  const { backingDirectory, exporter = "none", knobs = {} } = options;
  if (exporter === "loop" && backingDirectory === undefined) {
    throw new RangeError("The exporter loop needs a backing directory.");
  }
  const router = new Router({
    clock,
    random: options.random ?? systemRandom,
    profile: options.profile === undefined ? profiles[0]! : getProfile(options.profile),
    knobs,
    backing: makeBacking(backingDirectory),
    exporter: makeExporter(exporter, backingDirectory),
    pools: options.pools ?? [{ name: "storage-pool" }],
  });
  seed(router, options.basePaths?.[0] ?? defaultBasePath, options.seedDisks ?? 0);
  return router;
}

function makeBacking(folder: string | undefined): Backing {
  return folder === undefined ? new MemoryBacking() : new DirectoryBacking(join(folder, "files"));
}

function makeExporter(kind: "none" | "loop", folder: string | undefined): Exporter {
  return kind === "none" || folder === undefined ? noExporter : new LoopExporter(join(folder, "exports"));
}

function seed(router: Router, basePath: string, count: number): void {
  if (count > 0) router.files.makeDirectories(basePath.slice(1));
  for (let number = 1; number <= count; number++) {
    const slot = `seed-${String(number).padStart(5, "0")}`;
    const filePath = `${basePath}/${slot}.img`;
    if (router.files.find(filePath.slice(1)) === undefined) {
      router.files.create(filePath.slice(1), seedBytes);
    }
    router.disks.add({
      ...plainDisk,
      slot,
      type: "file",
      model: filePath,
      filePath,
      fileSizeBytes: seedBytes,
      sizeBytes: seedBytes,
      attachedBytes: seedBytes,
      mountFilesystem: false,
    });
  }
}
