import { describeFlags } from "../flags.ts";
import { systemClock } from "../host/clock.ts";
import { systemNetwork } from "../host/network.ts";
import { systemRandom } from "../host/random.ts";
import { checkUp, type CheckupSeams } from "./doctor/checkup.ts";
import { doctorFlags, type DoctorOptions, readDoctorOptions } from "./doctor/options.ts";
import { formatFindings, formatSummary } from "./doctor/print.ts";
import { nvmeHostSide } from "./doctor/host_side.ts";
import { runProbe } from "./doctor/run_probe.ts";
import { type CommandIo, exitCodes } from "./io.ts";
import { openTransport } from "./router.ts";

const help = `Usage: rds-csi doctor [flags]

Looks at everything that the driver needs of its router, and says what is wrong and how to put it right. Changes
nothing. Exit code 0 when there is no problem.

With --probe it asks the router what differs between routers, on scratch volumes in the one --base-path that is then
required, and prints the profile of this router, for --router-profile and for a bug report. Everything it makes is
called rds-csi-probe-… and is removed again, also after Ctrl-C; what a killed probe left goes with the next one.

Flags:
`;

/** How long all of it may take, in milliseconds. */
const timeoutMs = 120_000;

/** `rds-csi doctor`: what is wrong with the router, and what puts it right. */
export async function doctorCommand(args: readonly string[], io: CommandIo): Promise<number> {
  if (args.includes("--help")) {
    io.out(help + describeFlags(doctorFlags));
    return exitCodes.ok;
  }
  const options = readDoctorOptions(args, io.env);
  if (options.probe) return await probe(options, io);
  const seams = {
    clock: systemClock,
    random: systemRandom,
    network: systemNetwork(systemClock),
    readText: Deno.readTextFile,
  };
  return await examine(options, seams, io);
}

/** A controller's credentials are needed here: what is missing fails as it would there. */
async function probe(options: DoctorOptions, io: CommandIo): Promise<number> {
  const warning = (message: string) => io.err(`probe: ${message}`);
  const transport = await openTransport(options.router, { readText: Deno.readTextFile, warning });
  return await runProbe(options, {
    clock: systemClock,
    random: systemRandom,
    transport,
    host: nvmeHostSide(options.nvmeAddress, options.nvmePort),
    writeText: Deno.writeTextFile,
  }, io);
}

/** Prints the findings, and gives the exit code. */
export async function examine(options: DoctorOptions, seams: CheckupSeams, io: CommandIo): Promise<number> {
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(timeoutMs)]);
  const context = { requestId: "doctor", signal, deadlineMs: seams.clock.now() + timeoutMs };
  const findings = await checkUp(options, seams, context);
  if (options.json) io.out(JSON.stringify(findings, null, 2));
  else for (const line of [...formatFindings(findings), formatSummary(findings)]) io.out(line);
  return findings.some(({ state }) => state === "problem") ? exitCodes.failed : exitCodes.ok;
}
