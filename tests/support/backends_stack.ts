import assert from "node:assert/strict";
import { control } from "./control_port.ts";
import { readServeConfig } from "../../src/cli/config/config.ts";
import { parseRoutersFile } from "../../src/cli/config/routers_file.ts";
import type { RunningDriver } from "../../src/cli/serve/serve.ts";
import type { CsiClients } from "../../src/csi/server/client.ts";
import type { Simulator, SimulatorOptions } from "../../src/simulator/simulator.ts";
import { makeSshKeys } from "../fakes/ssh_keys.ts";
import { clusterId, noEnvironment, routerPassword, startClient, startRouter } from "./stack.ts";

/** A router of a {@linkcode BackendsStack}. */
export interface TestRouter {
  readonly name: string;
  readonly isDefault?: boolean;
  /** Lines of the file, besides those for reaching the simulator. */
  readonly lines?: readonly string[];
  readonly simulator?: Partial<SimulatorOptions>;
  /** The name of an earlier router that is the same machine. */
  readonly sameAs?: string;
  /** How the file spells its address. @default {"127.0.0.1"} */
  readonly address?: string;
}

/** Several simulated routers, and a controller that manages them by a file. */
export interface BackendsStack extends AsyncDisposable {
  readonly simulators: Readonly<Record<string, Simulator>>;
  readonly driver: RunningDriver;
  readonly clients: CsiClients;
  readonly log: readonly string[];
  /** The file of `--config`. */
  readonly file: string;
  /** Another driver with the same file. */
  another(flags?: readonly string[]): Promise<{ driver: RunningDriver; clients: CsiClients }>;
  /**
   * Another driver, with a file that names the simulators differently: names in the file, then of the simulators;
   * perhaps with another default one.
   */
  renamed(
    names: Readonly<Record<string, string>>,
    defaultName?: string,
  ): Promise<{ driver: RunningDriver; clients: CsiClients }>;
}

/** Starts a stack; dispose of it with `await using`. */
export async function startBackends(
  routers: readonly TestRouter[],
  flags: readonly string[] = [],
): Promise<BackendsStack> {
  await using made = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  made.defer(() => Deno.remove(folder, { recursive: true }));
  await Deno.writeTextFile(`${folder}/password`, `${routerPassword}\n`);
  const simulators: Record<string, Simulator> = {};
  for (const { name, simulator: options, sameAs } of routers) {
    if (sameAs !== undefined) {
      simulators[name] = simulators[sameAs]!;
      continue;
    }
    simulators[name] = await startRouter({ hostKey: makeSshKeys().private, ...options });
    made.defer(() => simulators[name]!.close());
  }
  const entries = routers.map((router) => entryOf(router, simulators[router.name]!, folder));
  const file = `${folder}/routers.yaml`;
  await Deno.writeTextFile(file, ["routers:", ...entries.flat()].join("\n"));
  const log: string[] = [];
  const start = async (path: string, more: readonly string[], parts: AsyncDisposableStack) => {
    const args = [...common, "--config", path, ...flags, ...more];
    const config = readServeConfig(args, noEnvironment, Deno.readTextFileSync, parseRoutersFile);
    return await startClient(config, parts, log);
  };
  const first = await start(file, [], made);
  const kept = made.move();
  return {
    simulators,
    ...first,
    log,
    file,
    another: (more = []) => start(file, more, kept),
    async renamed(names, defaultName) {
      const again = Object.entries(names).flatMap(([name, simulator]) => {
        const router = routers.find((one) => one.name === simulator)!;
        const isDefault = defaultName === undefined ? router.isDefault === true : name === defaultName;
        return entryOf({ ...router, name, isDefault }, simulators[simulator]!, folder);
      });
      const path = `${folder}/renamed.yaml`;
      await Deno.writeTextFile(path, ["routers:", ...again].join("\n"));
      return await start(path, [], kept);
    },
    async [Symbol.asyncDispose]() {
      await kept.disposeAsync();
      for (const simulator of Object.values(simulators)) {
        assert.deepEqual(simulator.violations.list(), []);
      }
    },
  };
}

const common = [
  ...["--mode", "controller", "--endpoint", "tcp://127.0.0.1:0", "--log-level", "debug"],
  ...["--metrics-address", "127.0.0.1:0", "--cluster-id", clusterId],
  ...["--known-node", "node-1", "--known-node", "node-2"],
];

function entryOf(
  { name, isDefault, lines = [], address = "127.0.0.1" }: TestRouter,
  simulator: Simulator,
  folder: string,
): string[] {
  return [
    `  - name: ${name}`,
    ...(isDefault === true ? ["    default: true"] : []),
    `    address: "${address}"`,
    `    port: ${simulator.sshPort}`,
    `    passwordFile: ${folder}/password`,
    `    hostKeys: [${simulator.hostKeyPublic}]`,
    "    unexportGrace: 0s",
    ...lines.map((line) => `    ${line}`),
  ];
}

/** The parts of a router's state that a client can change. */
export async function routerState(simulator: Pick<Simulator, "controlUrl">) {
  const { disks, exports } = await control<{
    disks: { slot: string; type: string; comment?: string; [key: string]: unknown }[];
    exports: { nqn?: string; [key: string]: unknown }[];
  }>(simulator, "GET /state");
  return { disks, exports };
}

/** Slots of the file disks of a router. */
export async function slotsOf(simulator: Pick<Simulator, "controlUrl">): Promise<string[]> {
  return (await routerState(simulator)).disks.filter(({ type }) => type === "file").map(({ slot }) => slot);
}
