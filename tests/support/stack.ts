import assert from "node:assert/strict";
import { type Environment, readServeConfig, type ServeConfig } from "../../src/cli/config/config.ts";
import { type RunningDriver, startDriver } from "../../src/cli/serve/serve.ts";
import { type CsiClients, dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import type { RouterBehaviours } from "../../src/router_profile/answers.ts";
import { formatProfile } from "../../src/router_profile/profile.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import type { ClusterView } from "../../src/volume/ports/cluster_view.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";

/** A simulated router, a controller that manages it, and a client of that controller, in one process. */
export interface Stack extends AsyncDisposable {
  readonly simulator: Simulator;
  readonly driver: RunningDriver;
  readonly clients: CsiClients;
  /** The file that the driver's password is in. */
  readonly passwordFile: string;
  /** What the driver logged, line by line. */
  readonly log: readonly string[];
  /** Router commands so far. */
  count(): Promise<{ execs: number; statements: number }>;
  violations(): Promise<readonly unknown[]>;
  /** A further driver on the same router, told the same about it; perhaps with another clock. */
  another(flags?: readonly string[], clock?: Clock): Promise<{ driver: RunningDriver; clients: CsiClients }>;
}

/** The cluster that a stack's controller belongs to unless its flags say otherwise. */
export const clusterId = "a test's cluster";

/** An environment without variables. */
export const noEnvironment: Environment = () => undefined;

/** Options of {@linkcode startStack}. */
export interface StackOptions {
  readonly simulator?: Partial<SimulatorOptions>;
  /** Flags of `rds-csi serve` beside those that make it reach the simulator; a later one wins. */
  readonly flags?: readonly string[];
  /** Whether the driver is given what `doctor --probe` would say of this router. @default {false} */
  readonly probed?: boolean;
  /** What the drivers are told about the router by `--router-profile`; by default nothing. */
  readonly reported?: Partial<RouterBehaviours>;
  /** Every driver's clock unless it is given another. @default {systemClock} */
  readonly clock?: Clock;
  /** What the drivers are told about their cluster. */
  readonly clusterView?: ClusterView;
}

/** A router that grows a disk while nodes have it, and a driver that knows: nobody is believed to do that unasked. */
export const growsOnline = {
  simulator: { behaviours: { grow: "live" } },
  reported: { grow: "live" },
} as const satisfies StackOptions;

const afterToggle = {
  grow: "after-toggle",
  identity: "new-per-export",
  withdrawal: "ends-sessions",
} as const;

/** A router that shows nodes a new size only after the export was off, and then as another disk; a driver that knows. */
export const growsByToggle = {
  simulator: { behaviours: afterToggle },
  reported: afterToggle,
} as const satisfies StackOptions;

/** Starts a stack; dispose of it with `await using`. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  // What was made before a start that fails is cleaned up as well.
  await using made = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  made.defer(() => Deno.remove(folder, { recursive: true }));
  const passwordFile = `${folder}/password`;
  await Deno.writeTextFile(passwordFile, `${routerPassword}\n`);
  const simulator = await startRouter(options.simulator);
  made.defer(() => simulator.close());
  const log: string[] = [];
  const reported = options.reported ?? (options.probed === true ? simulator.model.behaviours : undefined);
  const profileFlags = reported === undefined ? [] : ["--router-profile", "/test/profile.json"];
  const start = async (
    flags: readonly string[],
    parts: AsyncDisposableStack,
    clock = options.clock ?? systemClock,
  ) => {
    const config = readServeConfig(
      [...reach(simulator, passwordFile), ...profileFlags, ...options.flags ?? [], ...flags],
      noEnvironment,
      (path) =>
        reported === undefined
          ? Deno.readTextFileSync(path)
          : formatProfile({ ...simulator.model.profile, answers: reported }),
    );
    return await startClient(config, parts, log, { clock, clusterView: options.clusterView });
  };
  const first = await start([], made);
  const read = async (path: string) => await (await fetch(`${simulator.controlUrl}${path}`)).json();
  const kept = made.move();
  return {
    simulator,
    ...first,
    passwordFile,
    log,
    count: () => read("/count"),
    violations: () => read("/violations"),
    another: (flags = [], clock) => start(flags, kept, clock),
    async [Symbol.asyncDispose]() {
      await kept.disposeAsync();
      const violations = simulator.violations.list();
      // Whatever a test is about: nothing that the driver sends may break the rules of the router.
      assert.deepEqual(violations, []);
    },
  };
}

/** Starts a simulated router that a stack's password opens, and that takes no time. */
export function startRouter(options?: Partial<SimulatorOptions>): Promise<Simulator> {
  return startSimulator({
    clock: systemClock,
    random: systemRandom,
    timingScale: 0,
    hostKey: routerHostKey.privatePem,
    users: [{ name: "rds-csi", password: routerPassword }],
    ...options,
  });
}

/** A driver in this process and a client of it, which end with `parts`; what it logs goes to `log`. */
export async function startClient(
  config: ServeConfig,
  parts: AsyncDisposableStack,
  log: string[],
  more: { readonly clock?: Clock; readonly clusterView?: ClusterView | undefined } = {},
): Promise<{ driver: RunningDriver; clients: CsiClients }> {
  const driver = await startDriver(config, {
    clock: systemClock,
    random: systemRandom,
    sink: (line) => void log.push(line),
    readText: Deno.readTextFile,
    ...more,
  });
  parts.defer(() => driver.stop(1000));
  const clients = dial(loadCsi(), driver.address, systemClock);
  parts.defer(() => clients.close());
  return { driver, clients };
}

/** What `doctor --probe` would write about a simulated router. */
export function probedProfile({ model }: Pick<Simulator, "model">): string {
  return formatProfile({ ...model.profile, answers: model.behaviours });
}

/** The password that opens a stack's router. */
export const routerPassword = "a test's password";

/** Flags of a controller of a stack's cluster that make it reach a simulator. */
export function reach(
  simulator: Pick<Simulator, "sshPort" | "hostKeyPublic">,
  passwordFile: string,
): string[] {
  return [
    ...["--mode", "controller", "--endpoint", "tcp://127.0.0.1:0", "--log-level", "debug"],
    ...["--metrics-address", "127.0.0.1:0"],
    ...["--rds-address", "127.0.0.1", "--rds-port", String(simulator.sshPort)],
    ...["--rds-password-file", passwordFile, "--rds-host-key", simulator.hostKeyPublic],
    ...["--cluster-id", clusterId, "--unexport-grace", "0s"],
    ...["--known-node", "node-1", "--known-node", "node-2", "--known-node", "node-3"],
  ];
}
