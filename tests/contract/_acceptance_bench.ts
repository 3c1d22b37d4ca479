// Shared by the contract tests of the acceptance run: a simulated router, and a run on it.
import assert from "node:assert/strict";
import { nvmeHostSide } from "../../src/cli/doctor/doctor.ts";
import { runAndReport } from "../../src/cli/acceptance/acceptance.ts";
import { readAcceptanceOptions } from "../../src/cli/acceptance/options.ts";
import type { RunAdapters } from "../../src/cli/acceptance/run.ts";
import type { RunConnector } from "../../src/cli/acceptance/stack.ts";
import type { HostSide } from "../../src/doctor/probe/question.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { type AcceptanceReport, parseReport } from "../../src/router_profile/report/report.ts";
import { Ssh2Transport } from "../../src/routeros/ssh/ssh_transport.ts";
import { parseHostKeys } from "../../src/routeros/ssh/host_key.ts";
import type { SshTransport } from "../../src/routeros/ssh/transport.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import type { Finding } from "../../src/volume/model/finding.ts";
import { missingForNode } from "../../src/cli/acceptance/scratch.ts";
import { print } from "../../tools/print.ts";
import { scaledClock } from "../fakes/scaled_clock.ts";
import { routerHostKey } from "../fakes/ssh_keys.ts";
import { makeScratch } from "../support/scratch.ts";

/** The folder on the router for the run, on the simulator's pool. */
export const folder = "/storage-pool/try-it/here";
const password = "hunter2-of-the-router";

/** What a run gave. */
export interface RunOutcome {
  readonly code: number;
  readonly lines: readonly string[];
  readonly said: readonly string[];
  readonly report: AcceptanceReport;
  readonly output: string;
}

/** Options of one run. */
export interface BenchRun {
  readonly flags?: readonly string[];
  readonly transport?: SshTransport;
  readonly findings?: readonly Finding[];
  readonly signal?: AbortSignal;
  readonly basePath?: string;
  readonly adapters?: Partial<RunAdapters>;
}

/** A simulated router, and runs on it. */
export interface AcceptanceBench {
  readonly simulator: Simulator;
  readonly transport: SshTransport;
  /** A folder for each test, with the simulator's backing files below `router`. */
  readonly scratch: string;
  /** @throws what the run throws */
  run(options?: BenchRun): Promise<RunOutcome>;
  /** Everything on the router that a run could have changed. */
  state(): unknown;
}

const ownFile = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
/** Why volumes cannot go through life on loop devices here; undefined when they can. */
export const loopsMissing = await missingForNode(ownFile, "loop");
await Deno.remove(ownFile);
if (loopsMissing !== undefined) print(`ignored: lives on loop devices: ${loopsMissing}`);

/** Stands for a probe: the behaviour of the simulator, known without asking it. */
export const knownProfile: NonNullable<RunAdapters["probe"]> = () => {
  const answers = { limits: "enough", grow: "after-toggle", unexport: 0, copyReturns: "when-done" } as const;
  const profile = {
    name: "RDS2216 7.24.4 (stable)",
    version: "7.24.4 (stable)",
    poolFilesystem: "btrfs",
    answers,
  } as const;
  return Promise.resolve({ profile, unanswered: {} });
};

/** Names of the steps of a report with that result. */
export function stepsOf({ steps }: AcceptanceReport, result: string): string[] {
  return steps.filter((step) => step.result === result).map(({ step }) => step);
}

/** How fast the clock of the router and of the run goes. */
const scale = 5;

/** Starts a router with an empty folder for runs. */
export async function withAcceptanceBench(
  options: Partial<SimulatorOptions> & {
    readonly connector?: (scratch: string) => RunConnector;
    readonly scale?: number;
  },
  test: (bench: AcceptanceBench) => Promise<void>,
): Promise<void> {
  const { connector, scale: own = scale, ...simulated } = options;
  const clock = own === 1 ? systemClock : scaledClock(own);
  await using made = await makeScratch();
  const scratch = made.path;
  await using simulator = await startSimulator({
    timingScale: 0,
    clock,
    hostKey: routerHostKey.privatePem,
    users: [{ name: "keeper", password }],
    basePaths: [folder],
    backingDirectory: `${scratch}/router`,
    exporter: "tcp",
    ...simulated,
  });
  simulator.model.files.makeDirectories(folder.slice(1));
  await Deno.writeTextFile(`${scratch}/password`, password);
  const transport = new Ssh2Transport({
    host: "127.0.0.1",
    port: simulator.sshPort,
    user: "keeper",
    authentication: { password },
    hostKeys: parseHostKeys(simulator.hostKeyPublic, "127.0.0.1", simulator.sshPort),
    warning: assert.fail,
  });
  let runs = 0;
  const run = (given: BenchRun = {}) => {
    const parts = { simulator, transport, clock, scratch, connector: connector?.(scratch) };
    return runOn(parts, `${scratch}/run${++runs}`, given);
  };
  await test({ simulator, transport, scratch, run, state: () => stateOf(simulator) });
}

interface Parts
  extends Pick<AcceptanceBench, "simulator" | "transport" | "scratch">, Pick<RunAdapters, "clock"> {
  readonly connector: RunConnector | undefined;
}

/** The flags of a run on the bench's router, with its report in a folder. */
export function flagsOf(
  { simulator, scratch }: Pick<AcceptanceBench, "simulator" | "scratch">,
  output: string,
) {
  return [
    ...["--rds-address", "127.0.0.1", "--rds-port", String(simulator.sshPort), "--rds-user", "keeper"],
    ...["--rds-password-file", `${scratch}/password`, "--rds-host-key", simulator.hostKeyPublic],
    ...["--nvme-port", String(simulator.nvmePort ?? 4420), "--base-path", folder, "--output", output],
    ...["--data", "4Mi", "--yes"],
  ];
}

async function runOn(parts: Parts, own: string, given: BenchRun): Promise<RunOutcome> {
  const { simulator, clock } = parts;
  const [lines, said]: [string[], string[]] = [[], []];
  const output = `${own}/report`;
  await Deno.mkdir(`${output}/captures`, { recursive: true });
  const nvmePort = simulator.nvmePort ?? 4420;
  const host: HostSide = nvmeHostSide("127.0.0.1", nvmePort);
  const flags = [...flagsOf(parts, output), ...given.flags ?? []];
  if (given.basePath !== undefined) flags.splice(flags.indexOf("--base-path") + 1, 1, given.basePath);
  const options = readAcceptanceOptions(flags, () => undefined);
  const code = await runAndReport(options, {
    clock,
    random: systemRandom,
    transport: given.transport ?? parts.transport,
    host,
    connector: parts.connector ?? { kind: "none", reason: "this test has no node" },
    folder: own,
    signal: given.signal ?? new AbortController().signal,
    limits: { commandMs: 60_000 * scale, connectMs: 15_000 * scale, lastCommandMs: 10_000 * scale },
    doctor: () => Promise.resolve(given.findings ?? []),
    cannotGrow: () => undefined,
    releaseHere: () => Promise.resolve([]),
    leftHere: () => Promise.resolve([]),
    disconnect: () => Promise.resolve(),
    readText: Deno.readTextFile,
    ask: () => Promise.resolve(""),
    say: (text) => void said.push(text),
    ...given.adapters,
  }, { out: (line) => void lines.push(line), err: (line) => void said.push(line) });
  const report = parseReport(await Deno.readTextFile(`${output}/report.json`));
  return { code, lines, said, report, output };
}

function stateOf({ model }: Simulator): unknown {
  return structuredClone({
    disks: model.disks.list(),
    files: model.files.list(),
    subvolumes: model.subvolumes.list(),
    exports: model.exports.list(),
  });
}
