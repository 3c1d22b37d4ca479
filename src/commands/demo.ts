import { parseArgs } from "node:util";
import { systemClock } from "../host/clock.ts";
import { systemRandom } from "../host/random.ts";
import { Scenario, type Subject } from "./demo/scenario.ts";
import { formatTable, type StepRow } from "./demo/table.ts";
import { canGrowExt4Online, type DemoConnector, hasXfsTools } from "./demo/scratch.ts";
import { type DemoWorld, openDemoWorld } from "./demo/world.ts";
import { type CommandIo, exitCodes } from "./io.ts";

const help = `Usage: rds-csi demo [flags]

Starts a simulated router, a controller and a node in a scratch folder, and takes one file system and one raw block
volume through their whole lives, as a container orchestrator would. Leaves nothing behind.

Flags:
  --connector loop|nvme-tcp
                           how the node reaches volumes: loop devices, or the kernel's NVMe/TCP target and initiator,
                           whose modules (nvmet-tcp, nvme-tcp) have to be loaded (default loop)
  --filesystem ext4|xfs    the file system of the first volume (default ext4, or xfs where ext4 cannot be grown online)
  --data MIB               how much is written to a volume and compared, in MiB (default 64)
  --timing-scale NUMBER    how slow the router is: 1 as a real one, 0 as fast as it can (default 1)
  --verbose                print the driver's log
`;

/** `rds-csi demo`: shows the main job, ends with "demo: ok", and leaves nothing behind. */
export async function demoCommand(args: string[], io: CommandIo): Promise<number> {
  const options = readOptions(args);
  if (typeof options === "string") {
    io.err(`rds-csi demo: ${options}\n\n${help}`);
    return exitCodes.usage;
  }
  if (options.help) {
    io.out(help);
    return exitCodes.ok;
  }
  const seams = { clock: systemClock, random: systemRandom };
  const world = await openDemoWorld({ ...options, ...seams, warn: io.err });
  const problems: string[] = [];
  // Who names a connector wants to see that one.
  if (options.connector === "nvme-tcp" && world.nodeMissing !== undefined) problems.push(world.nodeMissing);
  try {
    await showLives(world, chooseSubjects(world, options, io), io, problems);
  } catch (error) {
    problems.push(describe(error));
    if (!options.verbose) world.lastLog(20).forEach((line) => io.err(line.trimEnd()));
  } finally {
    problems.push(...await world.close());
  }
  for (const problem of problems) io.err(`demo: ${problem}`);
  io.out(problems.length === 0 ? "demo: ok" : "demo: failed");
  return problems.length === 0 ? exitCodes.ok : exitCodes.failed;
}

interface DemoOptions {
  readonly connector: DemoConnector;
  /** Undefined takes what this machine can show. */
  readonly filesystem: "ext4" | "xfs" | undefined;
  readonly dataBytes: number;
  readonly timingScale: number;
  readonly verbose: boolean;
  readonly help: boolean;
}

/** The options, or in words what is wrong with them. */
function readOptions(args: string[]): DemoOptions | string {
  const flags = {
    "connector": { type: "string", default: "loop" },
    "filesystem": { type: "string" },
    "data": { type: "string", default: "64" },
    "timing-scale": { type: "string", default: "1" },
    "verbose": { type: "boolean", default: false },
    "help": { type: "boolean", default: false },
  } as const;
  try {
    const { values } = parseArgs({ args, options: flags });
    const timingScale = Number(values["timing-scale"]);
    const { connector, filesystem } = values;
    if (connector !== "loop" && connector !== "nvme-tcp") return "--connector is loop or nvme-tcp";
    if (filesystem !== undefined && filesystem !== "ext4" && filesystem !== "xfs") {
      return "--filesystem is ext4 or xfs";
    }
    if (!(timingScale >= 0 && timingScale <= 100)) return "--timing-scale is a number from 0 to 100";
    if (!/^[1-9][0-9]{0,2}$/.test(values.data)) return "--data is a number of MiB from 1 to 999";
    const dataBytes = Number(values.data) << 20;
    return { connector, filesystem, dataBytes, timingScale, verbose: values.verbose, help: values.help };
  } catch (error) {
    return describe(error);
  }
}

/** One file system and one block volume, of a kind that can be shown here. */
function chooseSubjects(
  world: DemoWorld,
  { filesystem: wanted, dataBytes }: DemoOptions,
  io: CommandIo,
): Subject[] {
  const growable = world.nodeMissing !== undefined || canGrowExt4Online();
  const filesystem = wanted ?? (growable || !hasXfsTools() ? "ext4" : "xfs");
  const expands = growable || filesystem === "xfs";
  if (!growable) {
    const instead = expands ? "xfs is shown instead" : "its expansion is left out";
    io.err(`demo: ext4 cannot be grown while mounted as this process lacks CAP_SYS_RESOURCE: ${instead}`);
  }
  return [
    { kind: filesystem, expands, dataBytes, name: demoName(filesystem) },
    { kind: "block", expands: true, dataBytes, name: demoName("block") },
  ];
}

function demoName(kind: string): string {
  const nonce = Array.from(systemRandom.bytes(4), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `demo-${kind}-${nonce}`;
}

async function showLives(
  world: DemoWorld,
  subjects: readonly Subject[],
  io: CommandIo,
  problems: string[],
): Promise<void> {
  const rows: StepRow[] = [];
  try {
    for (const subject of subjects) await showLife(world, subject, io, rows, problems);
  } finally {
    formatTable(rows).forEach((line) => io.out(line));
  }
  problems.push(...await world.leftovers());
}

async function showLife(
  world: DemoWorld,
  subject: Subject,
  io: CommandIo,
  rows: StepRow[],
  problems: string[],
): Promise<void> {
  const scenario = new Scenario(await world.stage(subject.kind, io.signal, (row) => rows.push(row)), subject);
  try {
    await (world.nodeMissing === undefined ? scenario.run() : scenario.runController());
  } catch (error) {
    const failures = await scenario.cleanUp();
    problems.push(...failures.map((failure) => `while cleaning up: ${failure}`));
    throw error;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
