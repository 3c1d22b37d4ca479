import { missingForNode, ScratchFolder } from "../acceptance/scratch.ts";
import { type RunConnector, type RunDriver, startRunDriver } from "../acceptance/stack.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import type { Stage } from "./scenario.ts";

/** How the demo's node connects volumes. */
export type DemoConnector = "loop" | "nvme-tcp";

/** The demo's environment: a router, a driver, a client, and a folder that contains everything. */
export interface DemoStack {
  /** Why the node half cannot be shown here; undefined when it can. */
  readonly nodeMissing: string | undefined;
  stage(signal: AbortSignal, listener: StepListener): Stage;
  /** What the router holds or complains about when it should not, for people. */
  leftovers(): string[];
  /** The last lines of the driver's log. */
  lastLog(lines: number): readonly string[];
  /** Stops everything and removes the folder; returns what it had to leave. */
  close(): Promise<string[]>;
}

/** Receives the steps. */
export type StepListener = Pick<Stage, "begin" | "report">;

/** Options of {@linkcode openDemoStack}. */
export interface DemoStackOptions {
  readonly connector: DemoConnector;
  readonly clock: Clock;
  readonly random: Random;
  readonly timingScale: number;
  readonly verbose: boolean;
  warn(line: string): void;
}

const nodeId = "demo-node-1";
const otherNodeId = "demo-node-2";

/** Starts the demo's environment. */
export async function openDemoStack(options: DemoStackOptions): Promise<DemoStack> {
  const scratch = await ScratchFolder.make(options.clock);
  try {
    const connector = await chooseConnector(scratch, options);
    const simulator = await openSimulator(scratch, connector, options);
    try {
      return await openDriver(scratch, simulator, connector, options);
    } catch (error) {
      await simulator.close();
      throw error;
    }
  } catch (error) {
    await scratch.remove();
    throw error;
  }
}

async function chooseConnector(
  scratch: ScratchFolder,
  { connector, warn }: DemoStackOptions,
): Promise<RunConnector> {
  const reason = await missingForNode(scratch.path, connector);
  if (reason !== undefined) {
    warn(`demo: only the controller's half can be shown: ${reason}`);
    return { kind: "none", reason };
  }
  if (connector === "loop") return { kind: connector, backing: `${scratch.path}/router` };
  await scratch.openNvmet();
  return { kind: connector };
}

const password = "only for the demo's own simulator";

function openSimulator(
  scratch: ScratchFolder,
  { kind }: RunConnector,
  { clock, random, timingScale }: DemoStackOptions,
): Promise<Simulator> {
  return startSimulator({
    clock,
    random,
    timingScale,
    users: [{ name: "rds-csi", password }],
    backingDirectory: `${scratch.path}/router`,
    ...(kind === "nvme-tcp" ? { exporter: "nvmet", nvmetFolder: scratch.nvmetFolder } : { exporter: "loop" }),
  });
}

async function openDriver(
  scratch: ScratchFolder,
  simulator: Simulator,
  connector: RunConnector,
  { clock, random, verbose, warn }: DemoStackOptions,
): Promise<DemoStack> {
  const log: string[] = [];
  const passwordFile = `${scratch.path}/password`;
  await Deno.writeTextFile(passwordFile, password, { mode: 0o600 });
  const driver = await startRunDriver({
    ...{ clock, random, readText: Deno.readTextFile, connector, nodeId, otherNodeId, folder: scratch.path },
    sink(line) {
      log.push(line);
      if (verbose) warn(line.trimEnd());
    },
    router: {
      address: "127.0.0.1",
      port: simulator.sshPort,
      user: "rds-csi",
      keyFile: undefined,
      passwordFile,
      hostKeys: [simulator.hostKeyPublic],
      insecureSkipVerify: false,
    },
    // The simulator ends every session at once when an export is withdrawn, so no grace period is needed.
    flags: ["--cluster-id", "demo", "--unexport-grace", "0s"],
  });
  const user = { clients: driver.clients, nodeId, otherNodeId, directory: scratch.path };
  const countCommands = () => simulator.journal.counts.execs;
  return {
    nodeMissing: connector.kind === "none" ? connector.reason : undefined,
    stage: (signal, listener) => ({ user, clock, countCommands, signal, ...listener }),
    leftovers: () => leftovers(simulator),
    lastLog: (lines) => log.slice(-lines),
    close: () => close(scratch, simulator, driver),
  };
}

function leftovers({ model, violations }: Simulator): string[] {
  return [
    ...model.disks.list().filter(({ type }) => type === "file").map(({ slot }) =>
      `the router still has the disk ${slot}`
    ),
    ...model.files.list().filter(({ path }) => path.endsWith(".img")).map(({ path }) =>
      `the router still has the file ${path}`
    ),
    ...violations.list().map((violation) => `the router complains: ${JSON.stringify(violation)}`),
  ];
}

async function close(scratch: ScratchFolder, simulator: Simulator, driver: RunDriver): Promise<string[]> {
  await driver[Symbol.asyncDispose]();
  await simulator.close();
  return await scratch.remove();
}
