import type { Random } from "../../volume/ports/system.ts";
import { type Fragment, ros } from "./command.ts";

/** 48 bits, so that no text on the router contains a nonce by chance. */
const nonceBytes = 6;
/** A nonce of the usual length, for computing the length of a command. */
export const sampleNonce = "0".repeat(2 * nonceBytes);

/** The mark of the frames of one exec, in hex digits. */
export function newFrameNonce(random: Random): string {
  return random.bytes(nonceBytes).toHex();
}

/** The parsed output of an exec. */
export interface Reply {
  /** The payload of each requested frame, by index; undefined where the frame is missing, torn or there twice. */
  readonly frames: readonly (string | undefined)[];
  /** Whether every requested frame is complete. Only then everything before them succeeded too. */
  readonly complete: boolean;
  /** Whether any frame began: then every statement before it succeeded. */
  readonly begun: boolean;
  /** Printable text outside of frames, lines joined by " · ": a refusal, or noise. "" when there is none. */
  readonly text: string;
}

/**
 * A statement that prints the result of `query` as JSON between two marks: `<nonce><index> … <nonce>`.
 *
 * A line with both marks is complete, whatever happened to the channel. It also proves that every statement before it
 * succeeded: a chain stops at the first failure, although a failed command exits with status 0.
 */
export function framed(nonce: string, index: number, query: Fragment): Fragment {
  return ros`:put (${`${nonce}${index} `}.[:serialize to=json options=json.no-string-conversion value=[${query}]].${` ${nonce}`})`;
}

/** A statement that prints an empty frame, which proves that the statements before it succeeded. */
export function sentinelOf(nonce: string): Fragment {
  return ros`:put ${`${nonce}0 - ${nonce}`}`;
}

/**
 * Parses the output of an exec. Pure and total: it never throws, and never mistakes a torn frame for a complete one.
 *
 * @param output everything the channel printed, stdout and stderr
 * @param nonce the nonce of this exec
 * @param count how many frames were requested
 */
export function parseReply(output: string, nonce: string, count: number): Reply {
  const found: string[][] = Array.from({ length: count }, () => []);
  const text: string[] = [];
  let begun = false;
  for (const { line, isLast } of linesOf(output, nonce)) {
    const frame = parseLine(line, nonce, count, isLast);
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

/** How many lines outside of frames are read: the answer may be millions of lines. */
const maxTextLines = 100;

/** The lines with the nonce, the last one, and the first others that are not empty; one after the other. */
function* linesOf(
  output: string,
  nonce: string,
): Generator<{ readonly line: string; readonly isLast: boolean }> {
  const lines = /[^\r\n]+/g;
  let others = 0;
  for (let match = lines.exec(output); match !== null; match = lines.exec(output)) {
    const [line] = match;
    yield { line, isLast: lines.lastIndex === output.length };
    if (line.includes(nonce) || ++others < maxTextLines) continue;
    const next = output.indexOf(nonce, lines.lastIndex);
    let start = next < 0 ? output.length : next;
    while (start > lines.lastIndex && !isLineEnd(output[start - 1])) start--;
    lines.lastIndex = start;
  }
}

function isLineEnd(character: string | undefined): boolean {
  return character === "\n" || character === "\r";
}

interface Frame {
  readonly index: number;
  /** Undefined when the line does not end with the closing mark. */
  readonly payload: string | undefined;
  readonly before: string;
}

function parseLine(line: string, nonce: string, count: number, isLast: boolean): Frame | undefined {
  const closing = ` ${nonce}`;
  for (let index = 0; index < count; index++) {
    const mark = `${nonce}${index} `;
    // Only a line without an end can be torn: any other line as short as this is something else.
    if (isLast && mark.startsWith(line)) return { index, payload: undefined, before: "" };
    const start = line.indexOf(mark);
    if (start < 0) continue;
    const rest = line.slice(start + mark.length);
    const payload = rest.slice(0, -closing.length);
    const whole = rest.endsWith(closing) && !payload.includes(nonce);
    // A mark in the middle of a line without a closing mark is an echo of the command, for example in an error, and no
    // frame.
    if (!whole && start > 0) return undefined;
    return { index, payload: whole ? payload : undefined, before: line.slice(0, start) };
  }
  return undefined;
}

/** The part of a line to show to people: no control characters, a bounded length. */
function printable(line: string): string {
  // deno-lint-ignore no-control-regex
  return line.replace(/[\u0000-\u001f\u007f-\u009f]/g, "").trim().slice(0, 300);
}

/** RouterOS's messages to a user whose group lacks a policy. */
const missingPolicy = /not enough permissions|not allowed \(9\)/i;

/** Whether a refusal says that the user's group lacks a policy. For messages only: no decision depends on texts. */
export function isMissingPolicy(text: string): boolean {
  return missingPolicy.test(text);
}

/** What a person can do about known error texts of RouterOS. Only ever added to a message. */
const hints: readonly (readonly [RegExp, string])[] = [
  [missingPolicy, "give the user's group the policies ssh, read and write"],
  [/not allowed by device-mode/i, "allow it on the router with /system/device-mode/update"],
  [
    /bad command name|syntax error|expected end of command/i,
    "check that the router runs RouterOS 7.21 or newer with the rose-storage package",
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
 * A refusal as one line for people: the router's own text and, if it is known, what to do.
 *
 * No decision depends on it: a missing frame shows a refusal.
 */
export function explainRefusal(text: string): string {
  const wording = text.length > 300 ? `${text.slice(0, 297)}...` : text;
  const hint = hints.find(([form]) => form.test(text))?.[1];
  return hint === undefined ? `"${wording}"` : `"${wording}" (${hint})`;
}
