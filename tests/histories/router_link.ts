import { VolumeError } from "../../src/volume/errors.ts";
import type { NotSent } from "../../src/volume/ports/not_sent.ts";
import type { Premise } from "../../src/volume/ports/premise.ts";
import { idOfWrite, type VolumeStore, type Write } from "../../src/volume/ports/store.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import type { FakeClock } from "../fakes/clock.ts";
import { type Mishap, type StoreMethod, writeMethod } from "../fakes/mishap.ts";
import type { FakeVolumeStore } from "../fakes/volume_store.ts";
import { latestMs } from "../../src/controller/records/in_doubt.ts";
import type { Process } from "./process.ts";
import type { CallStep, Trouble } from "./schedule.ts";

/** What happens instead of the command, by the trouble of the call. */
const mishaps: Partial<Record<string, Mishap>> = {
  refused: { refusal: "failure" },
  half: { runs: "half" },
  late: { late: true, unreadable: true },
  "refused-late": { refusal: "action timed out", late: true },
};

/** Commands that only read. */
const reads: readonly StoreMethod[] = [
  "view",
  "createView",
  "sourceView",
  "state",
  "poolHealth",
  "inventory",
  "files",
  "filesAt",
  "probe",
];

/** What a call has sent to the router. */
export interface Sent {
  commands: number;
  /** Of these, those that may change something. */
  changes: number;
  /** Whether the router refused the last change of a disk that was as the command expected it. */
  isRefused: boolean;
}

/** The least duration of a copy, in milliseconds. */
const copyMs = 6_000;

/** From this duration on, a command is on its way for half of it; before, it waits in its process. In milliseconds. */
const slowMs = 1_000;

/** How long a process tries to reach a router, in milliseconds. */
const unreachableMs = 3_000;

/** Whether an argument is the context of a call. */
export function isContext(argument: unknown): argument is CallContext {
  return typeof argument === "object" && argument !== null && "requestId" in argument;
}

/** The two ends of a link, and what is between them. */
export interface LinkEnds {
  readonly store: FakeVolumeStore;
  readonly process: Process;
  readonly clock: FakeClock;
  /** Aborted when the client gives up. */
  readonly signal: AbortSignal;
  /** Called after each command that may have changed something. */
  readonly observe: () => void;
  /** Counts what is sent. */
  readonly sent?: Sent;
}

/**
 * Returns the router for one call of a controller's process: slow, and with the call's trouble at one of its commands.
 *
 * The process checks its lead before it sends a command. A command on its way reaches the router, whatever becomes of
 * the process's lead.
 */
export function routerLink(
  ends: LinkEnds,
  { commandMs, trouble }: Pick<CallStep, "commandMs" | "trouble">,
): VolumeStore {
  let count = 0;
  const send = (name: StoreMethod) => async (...args: readonly unknown[]) => {
    await ends.process.alive();
    const number = count++;
    const takesMs = commandMs[number % commandMs.length]!;
    return await sendCommand(ends, {
      name,
      args,
      takesMs,
      what: trouble?.at === number ? trouble.what : undefined,
    });
  };
  // What was read last is asked of nobody.
  const methodOf = (name: StoreMethod) => name === "lastPools" ? ends.store.lastPools : send(name);
  return new Proxy(ends.store, { get: (_, name) => methodOf(name as StoreMethod) });
}

/** Whether the router did half of one command of a call, and nothing else went wrong, as the router never was so fast. */
export function undisturbed(
  { trouble, waits, timeoutMs }: Pick<CallStep, "trouble" | "waits" | "timeoutMs">,
  { isDead, isFrozen, isWithoutRouter, lead }: Process,
  tookMs: number,
): { readonly undisturbed?: true } {
  const isHalf = trouble?.what === "half" && waits && tookMs === 0 && timeoutMs > 0;
  const isServing = !isDead && !isFrozen && !isWithoutRouter && lead.refusal() === undefined;
  return isHalf && isServing ? { undisturbed: true } : {};
}

interface Command {
  readonly name: StoreMethod;
  readonly args: readonly unknown[];
  readonly takesMs: number;
  readonly what: Trouble["what"] | undefined;
}

async function sendCommand(ends: LinkEnds, command: Command): Promise<unknown> {
  const { process, clock } = ends;
  const { name, args, takesMs, what } = command;
  const wayMs = takesMs < slowMs ? 0 : takesMs / 2;
  if (name !== "copyFile" && takesMs > wayMs) await clock.sleep(takesMs - wayMs);
  await process.alive();
  if (what === "dies-before") process.die();
  await process.alive();
  if (what === "lost") return unsent(name, "Cannot reach the router");
  const context = args.find(isContext);
  context?.signal.throwIfAborted();
  const refusal = process.lead.refusal();
  if (refusal !== undefined) return unsent(name, `Cannot ask the router because ${refusal}`);
  if (process.isWithoutRouter) {
    await clock.sleep(unreachableMs, context?.signal);
    return unsent(name, "Cannot reach the router");
  }
  if (ends.sent !== undefined) count(ends.sent, ends.store, command);
  const running = runCommand(ends, { ...command, takesMs: name === "copyFile" ? takesMs : wayMs });
  try {
    const answer = await unlessAborted(running, context?.signal);
    if (what !== "unanswered" && !process.isWithoutRouter) return answer;
    throw new VolumeError("unavailable", "Cannot read what became of the command");
  } finally {
    await process.alive();
  }
}

/**
 * Like the adapter: of a write that the router has certainly not got that is told, of all else thrown.
 *
 * @throws {VolumeError} unavailable
 */
function unsent(name: StoreMethod, message: string): NotSent {
  const notSent = new VolumeError("unavailable", message);
  if (name === "commit") return { notSent };
  throw notSent;
}

function count(sent: Sent, { disks }: FakeVolumeStore, { name, args, what }: Command): void {
  sent.commands++;
  if (!reads.includes(name)) sent.changes++;
  if (name !== "commit") return;
  const [write, premises] = args as [Write, readonly Premise[]];
  const comment = disks.get(idOfWrite(write))?.comment;
  const isExpected = premises.some((premise) => premise.is === "comment" && premise.text === comment);
  const isChange = writeMethod(write, premises) === "change" && isExpected;
  if (isChange) sent.isRefused = what?.startsWith("refused") === true;
}

/** Runs a command that has left its process. The router in memory does not know the clock of the call's deadline. */
async function runCommand(
  { store, process, clock, signal, observe }: LinkEnds,
  { name, args, takesMs, what }: Command,
): Promise<unknown> {
  const kind = name === "copyFile" ? "copying" : "sending";
  process[kind]++;
  try {
    if (takesMs > 0 && name !== "copyFile") await clock.sleep(takesMs);
    if (process.isDead) await process.alive();
    // What is on its way when the router goes out of reach may come later.
    const trouble = what ?? (process.isWithoutRouter ? "late" : undefined);
    const mishap = trouble === undefined ? undefined : mishaps[trouble];
    if (name === "copyFile") store.mishap(name, { ...mishap, takesMs: Math.max(copyMs, takesMs) });
    else if (mishap !== undefined) store.mishap(name, mishap);
    if (mishap?.late) clock.timer(latestMs, () => (store.runLate(), observe()));
    const patient = args.map((one) => isContext(one) ? { requestId: one.requestId, signal } : one);
    return await (store[name as keyof VolumeStore] as (...args: unknown[]) => Promise<unknown>)(...patient);
  } finally {
    process[kind]--;
    observe();
    if (what === "dies-after") process.die();
  }
}

/** Waits for a command as long as its call goes on; the command runs on. */
async function unlessAborted(running: Promise<unknown>, signal: AbortSignal | undefined): Promise<unknown> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([running, promise]);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
