import { Buffer } from "node:buffer";
import type { Clock } from "../../volume/ports.ts";
import { type Caller, type Console, Interrupted, type Outcome } from "../console/console.ts";
import type { Fault } from "../faults.ts";
import type { Router } from "../model/router.ts";
import type { Journal } from "../watch/journal.ts";
import { lintExec, lintStatement } from "../watch/lint.ts";
import { watchOwnership } from "../watch/ownership.ts";
import type { Violations } from "../watch/violations.ts";

/** Where the answer to an exec request goes. */
export interface ExecChannel {
  write(stream: "stdout" | "stderr", bytes: Uint8Array): void;
  /** Closes the channel, telling an exit status unless it is undefined. */
  finish(status: number | undefined): void;
  /** Drops the TCP connection that the channel runs on. */
  drop(): void;
}

/** An exec request. */
export interface ExecRequest {
  readonly session: number;
  readonly mayWrite: boolean;
  readonly command: string;
  readonly fault: Fault | undefined;
  readonly channel: ExecChannel;
}

/** What exec requests are served with. */
export interface ExecService {
  readonly clock: Clock;
  readonly router: Router;
  readonly console: Console;
  readonly journal: Journal;
  readonly violations: Violations;
  readonly basePaths: readonly string[];
}

const routerNoise = "\r\n(25 messages not shown)\r\n";
const defaultDelayMs = 1000;

/** Runs a command and answers, as well as the fault that struck it lets it. */
export async function serveExec(request: ExecRequest, service: ExecService): Promise<void> {
  const note = service.journal.open(request.session, request.command);
  try {
    note(await attempt(request, service));
  } catch (error) {
    if (!(error instanceof Interrupted)) request.channel.drop();
    note(error instanceof Interrupted ? "interrupted by reboot" : `simulator error: ${String(error)}`);
  }
}

/** Gives the outcome for the journal. */
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
    case "error": {
      const refusal = String(fault.value ?? "failure: fault");
      answer(request, { output: "", refusal, statements: 0 }, service);
      return `fault error: ${refusal}`;
    }
  }
  const outcome = await run(request, service);
  if (fault?.action === "drop-after") channel.drop();
  else answer(request, outcome, service);
  const prefix = fault === undefined ? "" : `fault ${fault.action}, `;
  return prefix + (outcome.refusal ?? "ok");
}

async function run(request: ExecRequest, service: ExecService): Promise<Outcome> {
  const { session, command, mayWrite } = request;
  const { router, violations, basePaths } = service;
  let statements = 0;
  const report: Parameters<typeof watchOwnership>[2] = (rule, sentence) =>
    violations.report(session, command, rule, sentence);
  const caller: Caller = {
    mayWrite,
    observe: watchOwnership(router, basePaths, report),
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

function answer(
  { channel, fault }: ExecRequest,
  { output, refusal }: Outcome,
  { router }: ExecService,
): void {
  const { errorStream, exitOnError, lineEnd } = router.knobs;
  const complaint = refusal === undefined ? "" : refusal + (lineEnd === "crlf" ? "\r\n" : "\n");
  const noise = fault?.action === "noise" ? noiseLine(fault.value) : "";
  const stdout = Buffer.from(noise + output + (errorStream === "stdout" ? complaint : ""));
  const most = fault?.action === "truncate" ? Number(fault.value ?? 0) : stdout.length;
  channel.write("stdout", stdout.subarray(0, most));
  if (errorStream === "stderr") channel.write("stderr", Buffer.from(complaint));
  const status = refusal === undefined ? 0 : exitOnError;
  channel.finish(fault?.action === "close-no-status" ? undefined : status);
}

function noiseLine(value: string | number | undefined): string {
  return value === undefined ? routerNoise : `${value}\r\n`;
}
