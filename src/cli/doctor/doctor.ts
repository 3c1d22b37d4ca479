import { counted } from "../../volume/model/counted.ts";
import { systemFiles } from "../config/backends.ts";
import { systemClock } from "../../host/clock.ts";
import { type Network, systemNetwork } from "../../host/network.ts";
import { systemRandom } from "../../host/random.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { type Finding, type FindingListener, skipped } from "../../volume/model/finding.ts";
import { checkUp, type CheckupAdapters } from "./router_checkup.ts";
import { examineNode } from "../../doctor/node/node_checks.ts";
import type { NodeCheckAdapters } from "../../doctor/node/check.ts";
import { maxNqnTailBytes } from "../config/flag_tables.ts";
import { type DoctorHalves, type DoctorOptions, type NodeCheckRequest, readDoctorHalves } from "./options.ts";
import { type CommandIo, commandNotes, exitCodes } from "../io.ts";
import { type NodeParts, openNodeDeps, systemNodeParts } from "../serve/node.ts";
import { type Progress, withProgress } from "../progress.ts";
import { runLimited } from "../../async/deadline.ts";
import { openTransport } from "../serve/router.ts";
import { discover } from "../../nvme/discover.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageAbout } from "../../volume/error_messages.ts";
import { formatProfile } from "../../router_profile/profile.ts";
import type { HostSide, ProbeOptions } from "../../doctor/probe/question.ts";
import { prepareReboot, probeRouter } from "../../doctor/probe/probe.ts";
import { connectSubsystem } from "../../nvme/host_connection.ts";
import { isRefusedCommand, refusalOf } from "../../nvme/refusal.ts";

/** The text of `rds-csi doctor --help` before the flags. */
export const usage = `Usage: rds-csi doctor [flags]

Checks everything that the driver needs, and prints each problem with its fix.

With --rds-address it checks the router, as a controller does; with --config each of the routers, or the one that
--backend names. With --node-id (the driver's pod sets NODE_ID) or --node it checks this machine as a node: transport,
tools, mounts, connections, state files, and the way to the router's NVMe port. The node's checks need no credentials.
With none of these flags it checks this machine. It changes nothing, except that it makes and removes an empty file in
--state-dir.

With --probe it finds out how a router behaves, on scratch volumes in the one --base-path that is then required, or in
the only base path of the router that --config and --backend name. It prints the profile of the router, for
--router-profile and for a bug report. The names of its scratch objects begin with rds-csi-probe-. It removes them again,
even after Ctrl-C, and the next probe removes what a killed one left. It needs two runs to find out what a reboot does to
exports: one with --before-reboot, and one with --after-reboot.

Flags:
`;

/** How long everything together may take, in milliseconds. */
const timeoutMs = 120_000;

/** `rds-csi doctor`: finds problems of the router or this node, and their fixes. */
export async function doctorCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const parts = systemNodeParts(systemClock, commandNotes("doctor", io));
  const halves = readDoctorHalves(args, io.env, parts.files, await systemFiles(args, io.env));
  if (halves.router?.probe) return await probe(halves.router, io);
  const network = systemNetwork(systemClock);
  const router = { clock: systemClock, random: systemRandom, network, readText: Deno.readTextFile };
  return await examine(halves, { router, node: (options) => nodeCheckAdapters(options, parts, network) }, io);
}

/** This needs a controller's credentials; missing ones fail as they would for a controller. */
async function probe(options: DoctorOptions, io: CommandIo): Promise<number> {
  const warning = (message: string) => io.err(`probe: ${message}`);
  const transport = await openTransport(options.router, { readText: Deno.readTextFile, warning });
  return await runProbe(options, {
    clock: systemClock,
    random: systemRandom,
    transport,
    host: nvmeHostSide(options.nvmeAddress.split(",", 1)[0]!, options.nvmePort),
    writeText: Deno.writeTextFile,
  }, io);
}

/** The adapters of a check-up of both halves. */
export interface DoctorAdapters {
  readonly router: CheckupAdapters;
  node(options: NodeCheckRequest): NodeCheckAdapters;
}

/** Checks all routers at once: one that does not answer takes only its own time. */
async function checkUpNamed(
  named: DoctorHalves["named"],
  adapters: CheckupAdapters,
  context: CallContext,
  found: FindingListener,
): Promise<void> {
  const all = named.map(({ name, options }) =>
    checkUp(options, adapters, context, (finding) => found({ ...finding, check: `${name}/${finding.check}` }))
  );
  await Promise.all(all);
}

/**
 * Prints each finding as it is made, or all at the end as JSON, and returns the exit code. When it is stopped, the
 * findings so far stay.
 */
export async function examine(
  halves: DoctorHalves,
  adapters: DoctorAdapters,
  io: CommandIo,
): Promise<number> {
  const { clock } = adapters.router;
  const findings: Finding[] = [];
  const width = checkWidth(halves);
  const found = (finding: Finding) => {
    findings.push(finding);
    if (halves.json) return;
    io.rewrite?.("");
    for (const line of formatFindings([finding], width)) io.out(line);
  };
  const reporting = { io, clock, quiet: halves.json };
  let stopped: VolumeError | undefined;
  try {
    await withProgress("doctor", reporting, (progress) =>
      runLimited(
        clock,
        { name: "doctor", timeoutMs, signal: io.signal },
        (context) => lookAtAll(halves, adapters, context, progress, found),
      ));
  } catch (error) {
    if (!isEnd(error)) throw error;
    stopped = error;
  }
  if (halves.json) io.out(JSON.stringify(byRouter(findings, halves), null, 2));
  else io.out(formatSummary(findings));
  if (stopped !== undefined) io.err(`doctor: interrupted before every check was done: ${stopped.message}`);
  const isProblem = findings.some(({ state }) => state === "problem");
  return isProblem || stopped !== undefined ? exitCodes.failed : exitCodes.ok;
}

function isEnd(error: unknown): error is VolumeError {
  return VolumeError.is(error, "cancelled") || VolumeError.is(error, "deadline");
}

async function lookAtAll(
  { router, named, node }: DoctorHalves,
  adapters: DoctorAdapters,
  context: CallContext,
  progress: Progress,
  found: FindingListener,
): Promise<void> {
  if (node !== undefined) {
    progress("checking this machine");
    await examineNode({ ...adapters.node(node), options: node, context }, found);
  }
  if (router !== undefined) {
    progress(`looking at the router at ${router.router.address}`);
    await checkUp(router, adapters.router, context, found);
  } else if (named.length === 0) found(skipped("router", "not checked because --rds-address is missing"));
  if (named.length > 0) progress(`checking ${named.length} routers`);
  await checkUpNamed(named, adapters.router, context, found);
}

/** Orders findings by their routers, which are all checked at once. */
function byRouter(findings: readonly Finding[], { named }: DoctorHalves): readonly Finding[] {
  const place = ({ check }: Finding) => named.findIndex(({ name }) => check.startsWith(`${name}/`));
  return findings.toSorted((one, other) => place(one) - place(other));
}

/** Room for the name of every check: the later ones are unknown when the first is printed. */
function checkWidth({ named }: DoctorHalves): number {
  const longest = "nvme-transport".length;
  return longest + Math.max(0, ...named.map(({ name }) => name.length + 1));
}

/** The adapters of a check-up of this machine: its own kernel and tools, and the node service's dependencies. */
export function nodeCheckAdapters(
  options: NodeCheckRequest,
  parts: NodeParts,
  network: Network,
): NodeCheckAdapters {
  const { files, processes, paths } = parts;
  return {
    files,
    processes,
    network,
    paths,
    deps: depsOrReason(options, parts),
    discover: async (at, host, context) =>
      (await discover({ ...at, ...host }, context)).map(({ nqn }) => nqn),
  };
}

function depsOrReason({ config }: NodeCheckRequest, parts: NodeParts): NodeCheckAdapters["deps"] {
  try {
    return openNodeDeps(config, parts);
  } catch (error) {
    if (VolumeError.is(error)) return error.message;
    throw error;
  }
}

/** The findings as aligned lines, each fix on its own line below its finding. @param minWidth of their names */
export function formatFindings(findings: readonly Finding[], minWidth = "fix".length): string[] {
  const width = Math.max(...findings.map(({ check }) => check.length), minWidth);
  return findings.flatMap(({ state, check, found, fix }) => [
    `${state.padEnd(stateWidth)}  ${check.padEnd(width)}  ${oneLine(found)}`,
    ...(fix === undefined ? [] : [`${"".padEnd(stateWidth)}  ${"fix".padEnd(width)}  ${oneLine(fix)}`]),
  ]);
}

/** A summary in one line. */
export function formatSummary(findings: readonly Finding[]): string {
  const count = (state: Finding["state"]) => findings.filter((finding) => finding.state === state).length;
  const skipped = count("skipped") === 0 ? "" : `, ${count("skipped")} skipped`;
  const warnings = counted(count("warning"), "warning");
  return `doctor: ${count("ok")} ok, ${warnings}, ${counted(count("problem"), "problem")}${skipped}`;
}

const stateWidth = "problem".length;

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** The adapters of a probe. */
interface ProbeAdapters extends
  Pick<
    ProbeOptions,
    "clock" | "random" | "transport" | "host" | "limits" | "beginMs" | "callMs" | "writeMs"
  > {
  writeText(path: string, text: string): Promise<void>;
}

/** Probes the router and prints or writes its profile. */
export async function runProbe(
  options: DoctorOptions,
  adapters: ProbeAdapters,
  io: CommandIo,
): Promise<number> {
  const probing = {
    ...adapters,
    basePath: options.basePaths[0]!,
    nqnBytes: options.nqnPrefix.length + maxNqnTailBytes,
    afterReboot: options.reboot === "after",
    signal: io.signal,
    say: (text: string) => io.err(`probe: ${text}`),
  };
  if (options.reboot === "before") {
    await prepareReboot(probing);
    return exitCodes.ok;
  }
  const { profile, unanswered } = await probeRouter(probing);
  const text = formatProfile(profile, unanswered);
  if (options.output === "") io.out(text.trimEnd());
  else {
    try {
      await adapters.writeText(options.output, text);
    } catch (error) {
      // Three minutes of questions are not lost.
      io.out(text.trimEnd());
      io.err(
        `probe: not written to ${options.output}: ${messageAbout(options.output, error)}; ` +
          "the profile is printed instead",
      );
      return exitCodes.failed;
    }
    io.err(`probe: written to ${options.output}; use it with --router-profile ${options.output}`);
  }
  return exitCodes.ok;
}

/** This machine as a host of the exports at an address, without root and kernel. */
export function nvmeHostSide(address: string, port: number): HostSide {
  return {
    port,
    connect: (nqn, host, context) =>
      connectSubsystem({ address, port, nqn, hostNqn: host.nqn, hostId: host.id }, context),
    isRefusal: (error) => refusalOf(error) !== undefined,
    isRefusedCommand,
  };
}
