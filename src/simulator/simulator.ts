import { join } from "node:path";
import { systemClock } from "../host/clock.ts";
import { systemRandom } from "../host/random.ts";
import type { Clock, Random } from "../volume/ports/system.ts";
import { Console } from "./console/console.ts";
import { ControlServer } from "./control/server.ts";
import { Faults } from "./faults.ts";
import type { Behaviours } from "./behaviours.ts";
import { type Backing, MemoryBacking } from "./model/backing.ts";
import { DirectoryBacking } from "./model/directory_backing.ts";
import type { Exporter } from "./model/exports.ts";
import { type ExporterOptions, makeExporter } from "./model/exporters.ts";
import { type PoolOptions, Router } from "./model/router.ts";
import { NvmeTarget } from "./nvme/target.ts";
import { getProfile, type Profile, profiles } from "./profile.ts";
import { seedDisks } from "./seed.ts";
import type { Simulation } from "./control/request.ts";
import type { ConnectionService } from "./ssh/connection.ts";
import { generateHostKey, readHostKey } from "./ssh/host_key.ts";
import { SshService } from "./ssh/server.ts";
import { type User, Users } from "./ssh/users.ts";
import { handshakeSpan, Timing } from "./timing.ts";
import { Journal, Violations } from "./assertions/journal.ts";

/** The options of a simulator. */
export interface SimulatorOptions extends ExporterOptions {
  /** Address of the SSH port. @default {"127.0.0.1"} */
  readonly host?: string;
  /** 0 chooses a free one. @default {0} */
  readonly sshPort?: number;
  /** Address of the control port. Access to it gives full control of the router. @default {"127.0.0.1"} */
  readonly controlHost?: string;
  /** 0 chooses a free one. @default {0} */
  readonly controlPort?: number;
  /** @default {[{ name: "admin", password: "admin" }]} */
  readonly users?: readonly User[];
  /** Private key in PEM or OpenSSH format; without one an RSA-2048 key is made. */
  readonly hostKey?: string;
  /** A profile, or the name of one. @default {"ros-7.24"} */
  readonly profile?: string | Profile;
  /** They override the profile's. */
  readonly behaviours?: Partial<Behaviours>;
  /** 1 takes the time that a real router takes, 0 none. @default {1} */
  readonly timingScale?: number;
  /** Where its client may make files, with leading slash. @default {["/storage-pool/metal-csi"]} */
  readonly basePaths?: readonly string[];
  /** Eight hex digits each: the hashes that its client's names may contain. By default any. */
  readonly clusterHashes?: readonly string[];
  /** @default {[{ name: "storage-pool" }]} */
  readonly pools?: readonly PoolOptions[];
  /** Initial disks of 1 GiB, below the first base path. @default {0} */
  readonly seedDisks?: number;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** A running simulator. */
export interface Simulator extends AsyncDisposable {
  readonly sshPort: number;
  /** The port of the exporter `tcp`; undefined with any other. */
  readonly nvmePort: number | undefined;
  /** Without slash at the end. */
  readonly controlUrl: string;
  /** The present host key in OpenSSH's form: `ssh-rsa AAAA…`. */
  readonly hostKeyPublic: string;
  /** The router's state, for tests in the same process. */
  readonly model: Router;
  /** The router's requests. */
  readonly journal: Journal;
  /** The client's violations. */
  readonly violations: Violations;
  /** The waiting faults. */
  readonly faults: Faults;
  /** Stops both ports and withdraws every export. Backing files stay. */
  close(): Promise<void>;
}

/**
 * Starts a simulated router.
 *
 * @throws {RangeError} when an option is invalid.
 */
export async function startSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  const stop = new AbortController();
  const clock = stoppableClock(options.clock ?? systemClock, stop.signal);
  const exporter = makeExporter(options, clock);
  try {
    return await start(options, exporter, clock, stop);
  } catch (error) {
    await exporter.close?.();
    throw error;
  }
}

async function start(
  options: SimulatorOptions,
  exporter: Exporter,
  clock: Clock,
  stop: AbortController,
): Promise<Simulator> {
  const hostKey = options.hostKey === undefined ? generateHostKey() : readHostKey(options.hostKey);
  const router = makeRouter(options, clock, exporter);
  const service = makeService(options, router);
  const ssh = new SshService(service, hostKey);
  const simulation: Simulation = { ...service, menus: service.console.menus, ssh };
  const sshPort = await ssh.listen(options.host ?? "127.0.0.1", options.sshPort ?? 0);
  let control: ControlServer;
  try {
    control = new ControlServer(simulation, options.controlHost ?? "127.0.0.1", options.controlPort ?? 0);
  } catch (error) {
    await ssh.close();
    throw error;
  }
  const close = async () => {
    if (stop.signal.aborted) return;
    stop.abort(new Error("The simulator is closed."));
    await Promise.all([ssh.close(), control.close()]);
    router.exports.clear();
    router.files.abandonCopies();
    await exporter.close?.();
  };
  return {
    sshPort,
    nvmePort: exporter instanceof NvmeTarget ? exporter.port : undefined,
    controlUrl: control.url,
    get hostKeyPublic() {
      return ssh.hostKey.publicLine;
    },
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
  const { timing } = router;
  const users = new Users(options.users ?? [{ name: "admin", password: "admin" }]);
  return {
    clock: router.clock,
    router,
    console: new Console(router, timing, users),
    journal: new Journal(router.clock),
    violations: new Violations(router.clock),
    faults: new Faults(),
    area: { basePaths: options.basePaths ?? [defaultBasePath], clusterHashes: options.clusterHashes },
    users,
    async handshake() {
      const ms = timing.draw(handshakeSpan);
      if (ms > 0) await router.clock.sleep(ms);
    },
  };
}

function makeRouter(options: SimulatorOptions, clock: Clock, exporter: Exporter): Router {
  const { backingDirectory, behaviours = {}, profile = profiles[0]! } = options;
  const random = options.random ?? systemRandom;
  const router = new Router({
    clock,
    random,
    timing: new Timing(options.timingScale ?? 1, random),
    profile: typeof profile === "string" ? getProfile(profile) : profile,
    behaviours,
    backing: makeBacking(backingDirectory),
    exporter,
    pools: options.pools ?? [{ name: "storage-pool" }],
  });
  const [basePath = defaultBasePath] = options.basePaths ?? [];
  seedDisks(router, basePath, options.seedDisks ?? 0);
  router.disks.save();
  return router;
}

function makeBacking(folder: string | undefined): Backing {
  return folder === undefined ? new MemoryBacking() : new DirectoryBacking(join(folder, "files"));
}

/** A clock that stops with its owner: sleepers reject and timers are cancelled when `signal` is aborted. */
export function stoppableClock(clock: Clock, signal: AbortSignal): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    sleep: (ms, own) => clock.sleep(ms, own === undefined ? signal : AbortSignal.any([own, signal])),
    timer(ms, callback) {
      if (signal.aborted) return () => {};
      const stop = () => {
        cancel();
        signal.removeEventListener("abort", stop);
      };
      const cancel = clock.timer(ms, () => {
        signal.removeEventListener("abort", stop);
        callback();
      });
      signal.addEventListener("abort", stop);
      return stop;
    },
  };
}
