import { Buffer } from "node:buffer";
import type { Clock } from "../../volume/ports/system.ts";
import { type Console, Interrupted, type Outcome, someoneElse } from "../console/console.ts";
import type { Caller } from "../console/run.ts";
import type { Fault } from "../faults.ts";
import type { Router } from "../model/router.ts";
import type { Journal, Violations } from "../assertions/journal.ts";
import { lintExec, lintStatement } from "../assertions/lint.ts";
import { type OwnArea, watchOwnership } from "../assertions/ownership.ts";
import type { Policies } from "./users.ts";

/** The channel for the answer to an exec request. */
export interface ExecChannel {
  write(stream: "stdout" | "stderr", bytes: Uint8Array): void;
  /** Closes the channel, with an exit status unless it is undefined. */
  finish(status: number | undefined): void;
  /** Drops the TCP connection of the channel. */
  drop(): void;
}

/** An exec request. */
export interface ExecRequest {
  readonly session: number;
  /** The user's. */
  readonly policies: Policies;
  readonly command: string;
  readonly fault: Fault | undefined;
  readonly channel: ExecChannel;
}

/** The services of exec requests. */
export interface ExecService {
  readonly clock: Clock;
  readonly router: Router;
  readonly console: Console;
  readonly journal: Journal;
  readonly violations: Violations;
  /** What the client may change. */
  readonly area: OwnArea;
}

const routerNoise = "\r\n(25 messages not shown)\r\n";
const defaultDelayMs = 1000;
/** When a command runs that was answered before, in milliseconds. */
const lateMs = 1000;

/** Runs a command and answers, as far as its fault allows. */
export async function serveExec(request: ExecRequest, service: ExecService): Promise<void> {
  const note = service.journal.open(request.session, request.command);
  try {
    note(await attempt(request, service));
  } catch (error) {
    if (!(error instanceof Interrupted)) request.channel.drop();
    note(error instanceof Interrupted ? "interrupted by reboot" : `simulator error: ${String(error)}`);
  }
}

/** Returns the outcome for the journal. */
async function attempt(request: ExecRequest, service: ExecService): Promise<string> {
  const { fault, channel } = request;
  switch (fault?.action) {
    case "drop-before":
      channel.drop();
      return "fault drop-before";
    case "hang":
      if (fault.value === "after") await run(request, service);
      return "fault hang";
    case "delay":
      await service.clock.sleep(Number(fault.value ?? defaultDelayMs));
      break;
    case "error":
    case "error-late": {
      const refusal = String(fault.value ?? "failure: fault");
      await answer(request, { output: "", refusal }, service);
      if (fault.action === "error-late") {
        await service.clock.sleep(lateMs);
        await run(request, service);
      }
      return `fault ${fault.action}: ${refusal}`;
    }
  }
  const outcome = await runDisturbed(request, service);
  if (fault?.action === "drop-after") channel.drop();
  else await answer(request, outcome, service);
  const prefix = fault === undefined ? "" : `fault ${fault.action}, `;
  return prefix + (outcome.refusal ?? "ok");
}

/** Runs the command with the faults of the router itself, not those of the answer. */
async function runDisturbed(request: ExecRequest, service: ExecService): Promise<Outcome> {
  const { fault } = request;
  const { console } = service;
  const text = fault?.action === "duplicate" ? request.command : String(fault?.value ?? "");
  const isAfter = fault?.action === "run-after" || fault?.action === "duplicate" && fault.value === "after";
  const others = isAfter || fault?.action === "run-before" || fault?.action === "duplicate";
  if (others && !isAfter) await console.execute(text, someoneElse);
  try {
    return await run(request, service);
  } finally {
    if (isAfter) await console.execute(text, someoneElse);
  }
}

async function run(request: ExecRequest, service: ExecService): Promise<Outcome> {
  const { session, command, fault, policies } = request;
  const { router, violations, area } = service;
  let statements = 0;
  const report: Parameters<typeof watchOwnership>[2] = (rule, sentence) =>
    violations.report(session, command, rule, sentence);
  const caller: Caller = {
    ...policies,
    ignoresResize: fault?.action === "ignore-resize",
    observe: watchOwnership(router, area, report),
    understood(line) {
      statements += line.length;
      for (const { rule, sentence } of line.flatMap(lintStatement)) report(rule, sentence);
    },
  };
  try {
    return await service.console.execute(command, caller);
  } finally {
    service.journal.count(statements);
    for (const { rule, sentence } of lintExec(command, statements)) report(rule, sentence);
  }
}

async function answer(
  { channel, fault }: ExecRequest,
  { output, refusal }: Outcome,
  { clock, router, journal }: ExecService,
): Promise<void> {
  const isHostile = router.behaviours.output === "hostile";
  const complaint = refusal === undefined ? "" : refusal + (isHostile ? "\n" : "\r\n");
  const noise = fault?.action === "noise" ? noiseLine(fault.value) : "";
  const stdout = Buffer.from(noise + output + (isHostile ? "" : complaint));
  const shown = stdout.subarray(0, fault?.action === "truncate" ? cut(stdout, fault.value) : stdout.length);
  journal.countBytes(shown.length + (isHostile ? Buffer.byteLength(complaint) : 0));
  if (fault?.action === "drip") await drip(channel, shown, Number(fault.value ?? 1), clock);
  else channel.write("stdout", shown);
  if (isHostile) channel.write("stderr", Buffer.from(complaint));
  const status = isHostile && refusal !== undefined ? 1 : 0;
  channel.finish(fault?.action === "close-no-status" ? undefined : status);
}

/** Where an answer is cut off: after so many bytes, or between the JSON and a client's closing mark. */
function cut(stdout: Buffer, value: string | number | undefined): number {
  return value === "sentinel" ? stdout.lastIndexOf("]") + 1 : Number(value ?? 0);
}

async function drip(channel: ExecChannel, bytes: Buffer, ms: number, clock: Clock): Promise<void> {
  for (let offset = 0; offset < bytes.length; offset++) {
    await clock.sleep(ms);
    channel.write("stdout", bytes.subarray(offset, offset + 1));
  }
}

function noiseLine(value: string | number | undefined): string {
  return value === undefined ? routerNoise : `${value}\r\n`;
}
