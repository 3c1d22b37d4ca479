import type { Random } from "../../volume/ports/system.ts";
import { type Fragment, ros } from "./command.ts";

/** 48 bits, so that no text on the router contains a nonce by chance. */
const nonceBytes = 6;
/** As long as every nonce, for computing how long a command becomes. */
export const sampleNonce = "0".repeat(2 * nonceBytes);

/** What marks the frames of one exec, in hex digits. */
export function newFrameNonce(random: Random): string {
  return random.bytes(nonceBytes).toHex();
}

/** What an exec printed, taken apart. */
export interface Reply {
  /** The payload of each frame asked for, by index; undefined where the frame is missing, torn or there twice. */
  readonly frames: readonly (string | undefined)[];
  /** Whether every frame asked for is whole. Only then everything before them ran through too. */
  readonly complete: boolean;
  /** Whether any frame began: then every silent statement before it succeeded. */
  readonly begun: boolean;
  /** Printable text outside of frames, lines joined by " · ": a refusal, or noise. "" when there is none. */
  readonly text: string;
}

/**
 * A statement that prints the result of `query` as JSON between two marks: `<nonce><index> … <nonce>`.
 *
 * A line that has both marks is whole, whatever happened to the channel. It also shows that every statement before it
 * succeeded, as a chain stops at the first failure while a failed command exits with status 0.
 */
export function framed(nonce: string, index: number, query: Fragment): Fragment {
  return ros`:put (${`${nonce}${index} `}.[:serialize to=json options=json.no-string-conversion value=[${query}]].${` ${nonce}`})`;
}

/** A statement that prints a frame with nothing in it: a sign that what is before it ran through. */
export function sentinelOf(nonce: string): Fragment {
  return ros`:put ${`${nonce}0 - ${nonce}`}`;
}

/**
 * Takes the output of an exec apart. Pure and total: it never throws, and never takes a torn frame for a whole one.
 *
 * @param output everything the channel printed, stdout and stderr
 * @param nonce the nonce of this exec
 * @param count how many frames were asked for
 */
export function parseReply(output: string, nonce: string, count: number): Reply {
  const found: string[][] = Array.from({ length: count }, () => []);
  const text: string[] = [];
  let begun = false;
  const lines = output.split(/\r\n|\n|\r/);
  for (const [number, line] of lines.entries()) {
    const frame = parseLine(line, nonce, count, number === lines.length - 1);
    if (frame === undefined) {
      text.push(line);
      continue;
    }
    begun = true;
    text.push(frame.before);
    if (frame.payload !== undefined) found[frame.index]!.push(frame.payload);
  }
  const frames = found.map((payloads) => payloads.length === 1 ? payloads[0] : undefined);
  return {
    frames,
    complete: frames.every((payload) => payload !== undefined),
    begun,
    text: text.map(printable).filter((line) => line !== "").join(" · "),
  };
}

interface Frame {
  readonly index: number;
  /** Undefined when the line does not end in the closing mark. */
  readonly payload: string | undefined;
  readonly before: string;
}

function parseLine(line: string, nonce: string, count: number, isLast: boolean): Frame | undefined {
  const closing = ` ${nonce}`;
  for (let index = 0; index < count; index++) {
    const mark = `${nonce}${index} `;
    // Only a line without an end can be torn: any other that is as short says something else.
    if (isLast && line !== "" && mark.startsWith(line)) return { index, payload: undefined, before: "" };
    const start = line.indexOf(mark);
    if (start < 0) continue;
    const rest = line.slice(start + mark.length);
    const payload = rest.slice(0, -closing.length);
    const whole = rest.endsWith(closing) && !payload.includes(nonce);
    // A mark in mid-line without its end is an echo of the command, say in an error, not a frame that began.
    if (!whole && start > 0) return undefined;
    return { index, payload: whole ? payload : undefined, before: line.slice(0, start) };
  }
  return undefined;
}

/** What of a line a person may read: no control characters, a bounded length. */
function printable(line: string): string {
  // deno-lint-ignore no-control-regex
  return line.replace(/[\u0000-\u001f\u007f-\u009f]/g, "").trim().slice(0, 300);
}

/** What RouterOS says to a user whose group lacks a policy. */
const missingPolicy = /not enough permissions|not allowed \(9\)/i;

/** Whether the words of a refusal say that the user's group lacks a policy. For messages only: nothing decides by words. */
export function isMissingPolicy(text: string): boolean {
  return missingPolicy.test(text);
}

/** What a person can do about the error texts that RouterOS is known to print. Only ever added to a message. */
const hints: readonly (readonly [RegExp, string])[] = [
  [missingPolicy, "give the user's group the policies ssh, read and write"],
  [/not allowed by device-mode/i, "allow it on the router with /system/device-mode/update"],
  [
    /bad command name|syntax error|expected end of command/i,
    "check that the router runs RouterOS 7.17 or newer with the rose-storage package",
  ],
  [/could not unmount/i, "the router itself uses that disk"],
  [/no space|disk full|not enough (free )?space/i, "make room on the pool"],
  [/timed out/i, "the router is busy"],
  [
    /a volume has this fs-label/,
    "the contents of a volume make it look like the pool: rds-csi doctor names the volume",
  ],
];

/**
 * A refusal as one line for people: the router's own words and, where they are known, what to do.
 *
 * Nothing decides by these words: a refusal is noticed by the missing frame.
 */
export function explainRefusal(text: string): string {
  const wording = text.length > 300 ? `${text.slice(0, 297)}...` : text;
  const hint = hints.find(([form]) => form.test(text))?.[1];
  return hint === undefined ? `"${wording}"` : `"${wording}" (${hint})`;
}
