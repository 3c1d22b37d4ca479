// Faults between the driver and the router, each bound to the n-th command of a call.
import type { status } from "@grpc/grpc-js";
import { systemClock } from "../../src/host/clock.ts";
import type { FaultAction } from "../../src/simulator/faults.ts";
import type { Simulator } from "../../src/simulator/simulator.ts";
import { randomWords } from "../../src/simulator/refusal.ts";
import { SeededRandom } from "../fakes/random.ts";
import type { StackOptions } from "../support/stack.ts";
import type { Attempt } from "./rpcs.ts";
import type { Scene } from "./scene.ts";

/**
 * Repairs what a person would repair. It runs after the driver has failed twice, and at the latest before everything is
 * compared. It changes nothing when nothing is wrong.
 */
export type Healing = (() => void | Promise<void>) | undefined;

/** An object whose making was not completed, and that only a deletion removes. */
export interface Strand {
  readonly because: string;
  /** The driver's answer in that case. */
  readonly says: RegExp;
}

/** The error for an image of which it is not known whether it holds data. */
export const misplacedImage = /its image exists without a disk.*rds-csi audit --delete/;

/** A fault at one command of a call. */
export interface Fault {
  readonly name: string;
  /** The router on which it happens, and the driver's flags for such a router. */
  readonly options?: StackOptions;
  /** Arms the fault for the n-th command from now on, counted from 1. Returns how a person repairs it. */
  readonly strike: (scene: Scene, nth: number, attempt: Attempt) => Healing | Promise<Healing>;
  /** Whether the fault is the same at every command, so that the first is enough. */
  readonly once?: boolean;
  /** Whether each trial needs a router of its own. */
  readonly alone?: boolean;
  readonly strands?: Strand;
  /** Codes that the call may return, in addition to those for an unreachable router. */
  readonly codes?: readonly (keyof typeof status)[];
  /** How long it takes until all sent commands have arrived, in milliseconds. */
  readonly restMs?: number;
  /** How long the first try may take, in milliseconds, for faults without an answer. */
  readonly firstMs?: number;
}

/** Calls `act` right before the n-th command from now on runs. Returns how to prevent that. */
export function beforeCommand({ faults }: Simulator, nth: number, act: () => void): () => void {
  const strike = faults.strike.bind(faults);
  let isOn = true;
  let seen = 0;
  faults.strike = (command) => {
    if (++seen === nth && isOn) act();
    return strike(command);
  };
  return () => isOn = false;
}

/** A fault of one command on the wire, or of several commands in a row. */
function wire(
  name: string,
  action: FaultAction,
  value?: string | number,
  { times = 1, match = "", ...more }: Partial<Fault> & { readonly times?: number; readonly match?: string } =
    {},
): Fault {
  return {
    name,
    strike: ({ simulator: { faults } }, nth) => {
      faults.arm({ match, nth, times, action, value });
      return async () => {
        faults.clear();
        await systemClock.sleep(more.restMs ?? 0);
      };
    },
    ...more,
  };
}

/** A router that gives a disk another slot when its own is taken, and adopts an existing file. */
const renaming: StackOptions = {
  simulator: { behaviours: { duplicateSlot: "renamed", adopt: "kept", maxSlot: Infinity } },
};

/** A router whose own refusals have random texts. */
export const wordless: StackOptions = { simulator: { behaviours: { output: "hostile" } } };
const random = new SeededRandom();
const randomTexts = Array.from({ length: 6 }, () => randomWords(() => random.fraction()));

/** A command that is never answered although its connection lives. The repair ends the connection. */
function unanswered(value: "after" | undefined): Fault {
  return {
    name: "",
    firstMs: 400,
    strike: ({ simulator: { faults } }, nth) => {
      faults.arm({ match: "", nth, times: 1, action: "hang", value });
      let cut = false;
      return () => {
        faults.clear();
        // The next command ends the connection.
        if (!cut) faults.arm({ match: "", nth: 1, times: 1, action: "drop-before", value: undefined });
        cut = true;
      };
    },
  };
}

const writing = "not enough permissions (9)";

/** Faults of the wire. Those of one row are alike: each affects some of the commands, and together they affect all. */
export const wireFaults: readonly (readonly [row: string, faults: readonly Fault[]])[] = [
  ["connection drops before", [
    wire("once", "drop-before"),
    wire("3 times", "drop-before", undefined, { times: 3 }),
  ]],
  ["connection drops after", [
    wire("once", "drop-after"),
    wire("3 times", "drop-after", undefined, { times: 3 }),
  ]],
  ["no exit status", [wire("", "close-no-status")]],
  ["cut", [
    ...[0, 1, 14, 40, 300].map((bytes) => wire(`after ${bytes} bytes`, "truncate", bytes)),
    wire("before the last mark", "truncate", "sentinel"),
  ]],
  ["byte by byte", [wire("", "drip", 1, { once: true })]],
  ["noise", [
    wire("a line", "noise"),
    wire("like a failure", "noise", "failure: not really"),
    wire("like an answer", "noise", "[]"),
  ]],
  ["late", [wire("by 100 ms", "delay", 100)]],
  ["late, given up", [wire("", "delay", 300, { firstMs: 150, restMs: 350 })]],
  ["late, given up, slots renamed", [
    wire("", "delay", 300, { firstMs: 150, restMs: 350, options: renaming }),
  ]],
  ["never answered", [unanswered(undefined)]],
  ["run, never answered", [unanswered("after")]],
  ["channel refused", [
    wire("for the command", "refuse-channel", undefined, { match: "." }),
    wire("before the command", "refuse-channel", undefined, { match: "^" }),
  ]],
  ["refused", [
    ...["failure: no", "OK", "[]", "true", "0"].map((text) => wire(text, "error", text)),
    wire("3 times", "error", writing, { times: 3 }),
  ]],
  ["refused in random words", randomTexts.map((text) => wire(text, "error", text, { options: wordless }))],
  ["refused for a while", [wire("", "error", writing, { times: 1000 })]],
  ["run twice", [wire("the other first", "duplicate"), wire("the other later", "duplicate", "after")]],
  ["run twice, slots renamed", [
    wire("the other first", "duplicate", undefined, { options: renaming }),
    wire("the other later", "duplicate", "after", { options: renaming }),
  ]],
  ["a resize is ignored", [wire("", "ignore-resize", undefined, { codes: ["FAILED_PRECONDITION"] })]],
];
