import assert from "node:assert/strict";
import { control } from "./control_port.ts";
import { type Environment, readServeConfig, type ServeConfig } from "../../src/cli/config/config.ts";
import { type RunningDriver, startDriver } from "../../src/cli/serve/serve.ts";
import { type CsiClients, dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import type { RouterBehaviours } from "../../src/router_profile/answers.ts";
import { neededLimits } from "../../src/router_profile/limits.ts";
import type { Behaviours } from "../../src/simulator/behaviours.ts";
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
  /** The file with the driver's password. */
  readonly passwordFile: string;
  /** The driver's log, line by line. */
  readonly log: readonly string[];
  /** Router commands so far. */
  count(): Promise<{ execs: number; statements: number }>;
  violations(): Promise<readonly unknown[]>;
  /** Another driver on the same router, with the same configuration; perhaps with another clock. */
  another(flags?: readonly string[], clock?: Clock): Promise<{ driver: RunningDriver; clients: CsiClients }>;
}

/** The default cluster id of a stack's controller. */
export const clusterId = "a test's cluster";

/** An environment without variables. */
export const noEnvironment: Environment = () => undefined;

/** Options of {@linkcode startStack}. */
export interface StackOptions {
  readonly simulator?: Partial<SimulatorOptions>;
  /** Flags of `rds-csi serve` besides those for reaching the simulator; a later one wins. */
  readonly flags?: readonly string[];
  /** Whether the driver gets the result of `doctor --probe` for this router. @default {false} */
  readonly probed?: boolean;
  /** The drivers' `--router-profile`; none by default. */
  readonly reported?: Partial<RouterBehaviours>;
  /** The default clock of every driver. @default {systemClock} */
  readonly clock?: Clock;
  /** The drivers' view of their cluster. */
  readonly clusterView?: ClusterView;
}

/**
 * A router that grows a disk while nodes hold it, and a driver with its profile: without one a driver does not assume
 * that.
 */
export const growsOnline = {
  simulator: { behaviours: { grow: "live" } },
  reported: { grow: "live" },
} as const satisfies StackOptions;

const afterToggle = { grow: "after-toggle", unexport: 0 } as const;

/** A router that shows nodes a new size only after the export was off, and then as another disk; a driver that knows. */
export const growsByToggle = {
  simulator: { behaviours: { ...afterToggle, identity: "new-per-export" } },
  reported: afterToggle,
} as const satisfies StackOptions;

/** Starts a stack; dispose of it with `await using`. */
export async function startStack(options: StackOptions = {}): Promise<Stack> {
  // Cleans up after a start that fails, too.
  await using made = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  made.defer(() => Deno.remove(folder, { recursive: true }));
  const passwordFile = `${folder}/password`;
  await Deno.writeTextFile(passwordFile, `${routerPassword}\n`);
  const simulator = await startRouter(options.simulator);
  made.defer(() => simulator.close());
  const log: string[] = [];
  const reported = options.reported ??
    (options.probed === true ? probedAnswers(simulator.model.behaviours) : undefined);
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
  const kept = made.move();
  return {
    simulator,
    ...first,
    passwordFile,
    log,
    count: () => control(simulator, "GET /count"),
    violations: () => control(simulator, "GET /violations"),
    another: (flags = [], clock) => start(flags, kept, clock),
    async [Symbol.asyncDispose]() {
      await kept.disposeAsync();
      const violations = simulator.violations.list();
      // In every test, nothing that the driver sends may break the rules of the router.
      assert.deepEqual(violations, []);
    },
  };
}

/** Starts a simulated router with a stack's password and without delays. */
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

/** A driver in this process and a client of it, which end with `parts`; its log goes to `log`. */
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

/** The profile that `doctor --probe` would write for a simulated router. */
export function probedProfile({ model }: Pick<Simulator, "model">): string {
  return formatProfile({ ...model.profile, answers: probedAnswers(model.behaviours) });
}

/** The answers that it would find; `grow` has none where nothing grows. */
export function probedAnswers({ grow, ...others }: Behaviours): Partial<RouterBehaviours> {
  const { slotCharacters, commentBytes, nqnBytes, putBytes, commandBytes } = neededLimits;
  const isEnough = others.maxSlot >= slotCharacters && others.maxComment >= commentBytes &&
    others.maxNqn >= nqnBytes && others.maxPut >= putBytes && others.maxCommand >= commandBytes;
  const limits = isEnough ? "enough" : "too-small";
  return { ...others, limits, ...grow === "never" ? {} : { grow } };
}

/** The password of a stack's router. */
export const routerPassword = "a test's password";

/** Flags with which a controller of a stack's cluster reaches a simulator. */
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
