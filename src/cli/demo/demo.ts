import { type FlagTable, readFlags } from "../flags.ts";
import { systemClock } from "../../host/clock.ts";
import { systemRandom } from "../../host/random.ts";
import { formatTable, Scenario, type StepRow, type Subject } from "./scenario.ts";
import { canGrowExt4Online, hasXfsTools } from "../acceptance/scratch.ts";
import { type DemoConnector, type DemoStack, openDemoStack, type StepListener } from "./stack.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { withProgress } from "../progress.ts";

/** Flags of `rds-csi demo`. */
export const demoFlags: FlagTable = {
  connector: {
    form: "text",
    help:
      "How the node reaches volumes: loop devices, or the kernel's NVMe/TCP target and initiator, whose modules " +
      "(nvmet-tcp, nvme-tcp) have to be loaded.",
    fallback: "loop",
    choices: ["loop", "nvme-tcp"],
  },
  filesystem: {
    form: "text",
    help: "File system of the first volume. Default: ext4, or xfs if ext4 cannot be grown while mounted.",
    choices: ["ext4", "xfs"],
  },
  data: {
    form: "integer",
    help: "How much data to write to a volume and to compare, in MiB.",
    fallback: "64",
    least: 1,
    most: 999,
  },
  "timing-scale": {
    form: "number",
    help: "How slow the router is: 1 like a real one, 0 as fast as possible.",
    fallback: "1",
    least: 0,
    most: 100,
  },
  verbose: { form: "switch", help: "Print the driver's log." },
  json: { form: "switch", help: "Print the steps and the result as one JSON object." },
};

/** The text of `rds-csi demo --help` before the flags. */
export const usage = `Usage: rds-csi demo [flags]

Starts a simulated router, a controller and a node in a scratch folder, and takes one file system and one raw block
volume through their whole lives, as a container orchestrator would. Leaves nothing behind.

Flags:
`;

/**
 * `rds-csi demo`: shows the main functions, ends with "demo: ok", and leaves nothing behind.
 *
 * @throws {FlagError} when the flags are invalid
 */
export async function demoCommand(args: string[], io: CommandIo): Promise<number> {
  const options = readOptions(args, io.env);
  const adapters = { clock: systemClock, random: systemRandom };
  const stack = await openDemoStack({ ...options, ...adapters, warn: io.err });
  const problems: string[] = [];
  const rows: StepRow[] = [];
  const reporting = { io, clock: systemClock, quiet: options.json };
  // If the connector was named explicitly, it is a problem that it cannot be shown.
  if (options.connector === "nvme-tcp" && stack.nodeMissing !== undefined) problems.push(stack.nodeMissing);
  try {
    const subjects = chooseSubjects(stack, options, io);
    await withProgress("demo", reporting, (begin) => {
      const listener = { begin, report: (row: StepRow) => rows.push(row) };
      return showLives(stack, subjects, io.signal, { problems, listener });
    });
  } catch (error) {
    problems.push(messageOf(error));
    if (!options.verbose) stack.lastLog(20).forEach((line) => io.err(line.trimEnd()));
  } finally {
    problems.push(...await stack.close());
  }
  const ok = problems.length === 0;
  if (options.json) io.out(JSON.stringify({ ok, steps: rows.map(stepJson), problems }, null, 2));
  else {
    for (const line of formatTable(rows)) io.out(line);
    for (const problem of problems) io.err(`demo: ${problem}`);
    io.out(ok ? "demo: ok" : "demo: failed");
  }
  return ok ? exitCodes.ok : exitCodes.failed;
}

interface DemoOptions {
  readonly connector: DemoConnector;
  /** Undefined uses what this machine supports. */
  readonly filesystem: "ext4" | "xfs" | undefined;
  readonly dataBytes: number;
  readonly timingScale: number;
  readonly verbose: boolean;
  readonly json: boolean;
}

function readOptions(args: string[], env: CommandIo["env"]): DemoOptions {
  const flags = readFlags(demoFlags, args, env);
  const options: DemoOptions = {
    connector: flags.text("connector") as DemoConnector,
    filesystem: (flags.text("filesystem") || undefined) as DemoOptions["filesystem"],
    dataBytes: flags.number("data") << 20,
    timingScale: flags.number("timing-scale"),
    verbose: flags.switch("verbose"),
    json: flags.switch("json"),
  };
  flags.assertNoProblems();
  return options;
}

/** One file system and one block volume, of a kind that can be shown here. */
function chooseSubjects(
  stack: DemoStack,
  { filesystem: wanted, dataBytes }: DemoOptions,
  io: CommandIo,
): Subject[] {
  const growable = stack.nodeMissing !== undefined || canGrowExt4Online();
  const filesystem = wanted ?? (growable || !hasXfsTools() ? "ext4" : "xfs");
  const expands = growable || filesystem === "xfs";
  if (!growable) {
    const instead = expands ? "xfs is shown instead" : "its expansion is left out";
    io.err(
      `demo: ext4 cannot be grown while mounted because this process lacks CAP_SYS_RESOURCE: ${instead}`,
    );
  }
  return [
    { kind: filesystem, expands, dataBytes, name: demoName(filesystem) },
    { kind: "block", expands: true, dataBytes, name: demoName("block") },
  ];
}

function demoName(kind: string): string {
  const nonce = systemRandom.bytes(4).toHex();
  return `demo-${kind}-${nonce}`;
}

function stepJson({ step, milliseconds, commands, note }: StepRow): Readonly<Record<string, unknown>> {
  return { step, ms: Math.round(milliseconds), routerCommands: commands, note };
}

/** Where problems are collected. */
interface Notes {
  readonly problems: string[];
  readonly listener: StepListener;
}

async function showLives(
  stack: DemoStack,
  subjects: readonly Subject[],
  signal: AbortSignal,
  notes: Notes,
): Promise<void> {
  for (const subject of subjects) await showLife(stack, subject, signal, notes);
  notes.problems.push(...stack.leftovers());
}

async function showLife(
  stack: DemoStack,
  subject: Subject,
  signal: AbortSignal,
  { problems, listener }: Notes,
): Promise<void> {
  const scenario = new Scenario(stack.stage(signal, listener), subject);
  try {
    await (stack.nodeMissing === undefined ? scenario.run() : scenario.runController());
  } catch (error) {
    const failures = await scenario.cleanUp();
    problems.push(...failures.map((failure) => `while cleaning up: ${failure}`));
    throw error;
  }
}
