import { readServeConfig } from "../config/config.ts";
import { type CsiClients, dial } from "../../csi/server/client.ts";
import { needsLegacyListener } from "../../csi/server/legacy_unix_listener.ts";
import { loadCsi } from "../../csi/server/proto.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import { type RunningDriver, startDriver } from "../serve/serve.ts";
import type { Stage } from "./scenario.ts";
import { type DemoConnector, missingForNode, ScratchFolder } from "./scratch.ts";

/** The demo's environment: a router, a driver, a client, and a folder that contains everything. */
export interface DemoStack {
  /** Why the node half cannot be shown here; undefined when it can. */
  readonly nodeMissing: string | undefined;
  stage(name: string, signal: AbortSignal, listener: StepListener): Promise<Stage>;
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
    const nodeMissing = await missingForNode(scratch.path, options.connector);
    if (nodeMissing !== undefined) {
      options.warn(`demo: only the controller's half can be shown: ${nodeMissing}`);
    }
    const byNvme = options.connector === "nvme-tcp" && nodeMissing === undefined;
    if (byNvme) await scratch.openNvmet();
    const simulator = await openSimulator(scratch, byNvme, options);
    try {
      return await openDriver(scratch, simulator, nodeMissing, options);
    } catch (error) {
      await simulator.close();
      throw error;
    }
  } catch (error) {
    await scratch.remove();
    throw error;
  }
}

const password = "only for the demo's own simulator";

function openSimulator(
  scratch: ScratchFolder,
  byNvme: boolean,
  { clock, random, timingScale }: DemoStackOptions,
): Promise<Simulator> {
  return startSimulator({
    clock,
    random,
    timingScale,
    users: [{ name: "rds-csi", password }],
    backingDirectory: `${scratch.path}/router`,
    ...(byNvme ? { exporter: "nvmet", nvmetFolder: scratch.nvmetFolder } : { exporter: "loop" }),
  });
}

async function openDriver(
  scratch: ScratchFolder,
  simulator: Simulator,
  nodeMissing: string | undefined,
  options: DemoStackOptions,
): Promise<DemoStack> {
  const { clock, random } = options;
  const log: string[] = [];
  const sink = (line: string) => {
    log.push(line);
    if (options.verbose) options.warn(line.trimEnd());
  };
  await Deno.writeTextFile(`${scratch.path}/password`, password, { mode: 0o600 });
  const config = readServeConfig(
    serveArgs(scratch.path, simulator, nodeMissing === undefined, options.connector),
    () => undefined,
  );
  const driver = await startDriver(config, { clock, random, sink, readText: Deno.readTextFile });
  const clients = dial(loadCsi(), driver.address, clock);
  return {
    nodeMissing,
    stage: (name, signal, listener) => stage({ scratch, simulator, clients, clock }, name, signal, listener),
    leftovers: () => leftovers(simulator),
    lastLog: (lines) => log.slice(-lines),
    close: () => close(scratch, simulator, driver, clients),
  };
}

function serveArgs(
  folder: string,
  simulator: Simulator,
  withNode: boolean,
  connector: DemoConnector,
): string[] {
  // A runtime that cannot serve gRPC on a unix socket itself cannot dial one either.
  const endpoint = needsLegacyListener(Deno.version.deno) ? "tcp://127.0.0.1:0" : `unix://${folder}/csi.sock`;
  return [
    ...["--mode", withNode ? "all" : "controller", "--endpoint", endpoint, "--log-level", "debug"],
    ...["--metrics-address", ""],
    ...["--node-id", nodeId, "--known-node", nodeId, "--known-node", otherNodeId],
    ...["--rds-address", "127.0.0.1", "--rds-port", String(simulator.sshPort)],
    ...["--rds-password-file", `${folder}/password`, "--rds-host-key", simulator.hostKeyPublic],
    // The simulator ends every session at once when an export is withdrawn, so no grace period is needed.
    ...["--cluster-id", "demo", "--unexport-grace", "0s"],
    ...["--connector", connector, "--state-dir", `${folder}/state`],
    ...(connector === "loop" ? ["--loop-backing", `${folder}/router`] : []),
  ];
}

async function stage(
  parts: { scratch: ScratchFolder; simulator: Simulator; clients: CsiClients; clock: Clock },
  name: string,
  signal: AbortSignal,
  listener: StepListener,
): Promise<Stage> {
  const directory = `${parts.scratch.path}/${name}`;
  // The kubelet makes the staging folder's parent and the staging folder itself.
  await Deno.mkdir(`${directory}/staging`, { recursive: true });
  const { clients, clock } = parts;
  return {
    clients,
    clock,
    nodeId,
    otherNodeId,
    directory,
    signal,
    ...listener,
    countCommands: () => parts.simulator.journal.counts.execs,
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

async function close(
  scratch: ScratchFolder,
  simulator: Simulator,
  driver: RunningDriver,
  clients: CsiClients,
): Promise<string[]> {
  clients.close();
  await driver.stop(5_000);
  await simulator.close();
  return await scratch.remove();
}
