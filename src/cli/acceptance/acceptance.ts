import { nvmeHostSide } from "../doctor/doctor.ts";
import { checkUp } from "../doctor/router_checkup.ts";
import { canGrowExt4Online, missingForNode, ScratchFolder } from "./scratch.ts";
import { runLimited } from "../../async/deadline.ts";
import { systemClock } from "../../host/clock.ts";
import { Libc } from "../../host/libc.ts";
import { systemNetwork } from "../../host/network.ts";
import { SystemProcesses } from "../../host/processes.ts";
import { systemRandom } from "../../host/random.ts";
import { readMountTable } from "../../filesystem/mountinfo.ts";
import { readNqns } from "../../nvme/kernel/sysfs.ts";
import type { Finding } from "../../volume/model/finding.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { type CommandIo, exitCodes } from "../io.ts";
import { openTransport } from "../serve/router.ts";
import { nqnPrefix, ownMarks } from "./names.ts";
import { type AcceptanceOptions, readAcceptanceOptions } from "./options.ts";
import { prepareOutput, writeReport } from "./report_files.ts";
import { summariseSteps } from "./report_text.ts";
import { AcceptanceRun, type RunAdapters } from "./run.ts";

/** The text of `rds-csi acceptance --help` before the flags. */
export const usage = `Usage: rds-csi acceptance --base-path FOLDER --output DIR [flags]

Takes volumes through their whole lives on your own router, and reports which promises hold on it. It needs root, the
kernel's NVMe/TCP (modprobe nvme-tcp), nvme-cli and mkfs on a machine that reaches the router, and an empty folder on a
pool. It asks no cluster, and touches no volume but its own. It says what it will make, and waits for "yes"; it removes
everything again, even after Ctrl-C, and the next run removes what a killed one left. Run one at a time.

The report holds no names, addresses, keys or serial numbers: send report.json to the project, so that the simulator can
be compared with your router. Exits with 1 if a promise does not hold, or if it may not run.

Flags:
`;

/** What earlier runs on this machine are found by; a person may call the folder of a report by the beginning alone. */
const folderName = { prefix: "rds-csi-acceptance-", suffix: ".scratch" } as const;
const doctorMs = 120_000;
const disconnectMs = 10_000;

/**
 * `rds-csi acceptance`: takes volumes through their lives on a router, and writes a report.
 *
 * @param changed what a test does otherwise
 */
export async function acceptanceCommand(
  args: string[],
  io: CommandIo,
  changed: Partial<RunAdapters> = {},
): Promise<number> {
  const options = readAcceptanceOptions(args, io.env);
  await prepareOutput(options.output);
  const say = (text: string) => io.err(`acceptance: ${text}`);
  const transport = await openTransport(options.router, { readText: Deno.readTextFile, warning: say });
  const scratch = await ScratchFolder.make(systemClock, folderName);
  const machine = new Machine(scratch);
  try {
    await machine.assertFit(changed.connector?.kind === "loop" ? "loop" : "initiator");
    for (const problem of await machine.cleanUp()) say(problem);
    const adapters = { ...adaptersOf(options, machine, io), transport, say, signal: io.signal, ...changed };
    return await runAndReport(options, adapters, io);
  } finally {
    for (const problem of await machine.close()) say(problem);
  }
}

/** Runs, prints each result, and writes the report. */
export async function runAndReport(
  options: AcceptanceOptions,
  adapters: Omit<RunAdapters, "reported">,
  io: Pick<CommandIo, "out" | "err">,
): Promise<number> {
  const run = new AcceptanceRun(options, {
    ...adapters,
    reported: ({ step, result, note }) =>
      io.out(`${result.padEnd("not here".length)}  ${step}${note && `: ${note}`}`),
  });
  const result = await run.run();
  await writeReport(options, result, await secretsOf(options, adapters.readText), Deno.writeTextFile);
  io.out(`acceptance: ${summariseSteps(result.report)}; the report is in ${options.output}`);
  return result.report.steps.some((step) => step.result === "fail") ? exitCodes.failed : exitCodes.ok;
}

/** What must not be in any report. */
async function secretsOf(
  { router }: AcceptanceOptions,
  readText: RunAdapters["readText"],
): Promise<string[]> {
  const files = [router.keyFile, router.passwordFile].filter((file) => file !== undefined);
  const texts = await Promise.all(files.map((file) => readText(file)));
  return [...texts, ...router.hostKeys].flatMap((text) => text.split(/[\r\n]+/)).map((line) => line.trim());
}

function adaptersOf(
  options: AcceptanceOptions,
  machine: Machine,
  io: CommandIo,
): Omit<RunAdapters, "reported" | "transport" | "say" | "signal"> {
  const address = options.nvmeAddress.split(",", 1)[0]!;
  return {
    clock: systemClock,
    random: systemRandom,
    host: nvmeHostSide(address, options.nvmePort),
    connector: { kind: "nvme-tcp" },
    folder: machine.folder,
    doctor: () => askDoctor(options, io),
    cannotGrow: (kind) =>
      kind === "ext4" && !canGrowExt4Online()
        ? "this process may not grow a mounted ext4: it lacks CAP_SYS_RESOURCE"
        : undefined,
    releaseHere: () => machine.release(),
    leftHere: () => machine.left(),
    disconnect: (nqn) => machine.disconnect(nqn),
    readText: Deno.readTextFile,
    ask: (question) => ask(question, io),
  };
}

async function ask(question: string, { ask, signal }: CommandIo): Promise<string> {
  signal.throwIfAborted();
  if (ask === undefined) {
    throw new VolumeError(
      "precondition",
      "Cannot ask before it begins because there is no terminal: give --yes",
    );
  }
  return await ask(question);
}

async function askDoctor(options: AcceptanceOptions, io: CommandIo): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const { router, nvmeAddress, nvmePort, basePath } = options;
  const asked = {
    ...{
      probe: false,
      reboot: "" as const,
      output: "",
      router,
      isNode: true,
      kind: "block" as const,
      basePaths: [basePath],
    },
    ...{ nvmeAddress, nvmePort, nqnPrefix, overcommit: 1, profile: undefined, cluster: ownMarks.cluster },
  };
  const adapters = {
    clock: systemClock,
    random: systemRandom,
    network: systemNetwork(systemClock),
    readText: Deno.readTextFile,
  };
  await runLimited(
    systemClock,
    { name: "doctor", timeoutMs: doctorMs, signal: io.signal },
    (context) => checkUp(asked, adapters, context, (finding) => findings.push(finding)),
  );
  return findings;
}

function isScratch(name: string): boolean {
  const { prefix, suffix } = folderName;
  return name.startsWith(prefix) && name.endsWith(suffix);
}

/** What a run makes on this machine: a folder with mounts, and connections to its own exports. */
class Machine {
  readonly #scratch: ScratchFolder;
  readonly #kernel = new Libc();
  readonly #processes = new SystemProcesses({ clock: systemClock });

  constructor(scratch: ScratchFolder) {
    this.#scratch = scratch;
  }

  get folder(): string {
    return this.#scratch.path;
  }

  /** @throws {VolumeError} precondition when it cannot be a node */
  async assertFit(connector: Parameters<typeof missingForNode>[1]): Promise<void> {
    const missing = await missingForNode(this.#scratch.path, connector);
    if (missing === undefined) return;
    throw new VolumeError("precondition", `Cannot run on this machine because ${missing}`);
  }

  /** Removes what earlier runs left here; returns what stays. */
  async cleanUp(): Promise<readonly string[]> {
    const problems: string[] = [];
    const parent = this.#scratch.path.slice(0, this.#scratch.path.lastIndexOf("/"));
    for (const entry of Deno.readDirSync(parent)) {
      const path = `${parent}/${entry.name}`;
      if (!entry.isDirectory || !isScratch(entry.name) || path === this.#scratch.path) continue;
      // Somebody else's folder of that name is none of a run, which needs root.
      if ((await Deno.stat(path)).uid !== 0) continue;
      problems.push(...await ScratchFolder.of(path, systemClock).remove());
    }
    return [...problems, ...await this.#disconnectAll()];
  }

  /** Ends what this run has here; returns what stays. */
  async release(): Promise<readonly string[]> {
    return [...await this.#scratch.release(), ...await this.#disconnectAll()];
  }

  async #disconnectAll(): Promise<string[]> {
    const problems: string[] = [];
    for (const nqn of this.#connected()) {
      await this.disconnect(nqn).catch((error) => problems.push(messageOf(error)));
    }
    return problems;
  }

  left(): Promise<readonly string[]> {
    const mounts = readMountTable(this.#kernel).map(({ mountPoint }) => mountPoint)
      .filter((path) => path.startsWith(`${this.#scratch.path}/`));
    return Promise.resolve([...mounts, ...this.#connected()]);
  }

  async disconnect(nqn: string): Promise<void> {
    if (!nqn.startsWith(`${nqnPrefix}:`)) {
      throw new TypeError(`Cannot disconnect what is not the run's: ${nqn}`);
    }
    // A newer kernel gives up by itself what it is refused.
    if (!this.#connected().includes(nqn)) return;
    const signal = AbortSignal.timeout(disconnectMs);
    await this.#processes.run("nvme", {
      args: ["disconnect", "--nqn", nqn],
      signal,
      subject: nqn,
      timeoutMs: disconnectMs,
    });
  }

  async close(): Promise<readonly string[]> {
    const problems = [...await this.#scratch.remove(), ...await this.#disconnectAll()];
    this.#kernel.close();
    return problems;
  }

  #connected(): string[] {
    return readNqns(this.#kernel).filter((nqn) => nqn.startsWith(`${nqnPrefix}:`));
  }
}
