import { isObject, parseObject } from "../profile.ts";

/** The form of a report, in its first line: another form gets another number. */
const reportFormat = "rds-csi-acceptance/1";

/** How a step of an acceptance run ended; `not here` where this router or this machine cannot show it. */
export type StepResult = "pass" | "fail" | "not here";

/** What became of one promise. */
export interface ReportedStep {
  readonly step: string;
  /** The promise, in the words of promises.md. */
  readonly promise: string;
  readonly result: StepResult;
  /** Why it failed or is not here, or what it measured; "" for nothing. */
  readonly note: string;
  readonly ms: number;
  /** Commands to the router. */
  readonly commands: number;
}

/** How long the commands of one kind took, in milliseconds. */
export interface CommandTimes {
  readonly kind: string;
  readonly count: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly maxMs: number;
}

/** A value of an answer. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** What a router printed for one command, without what belongs to its owner. */
export interface RecordedAnswer {
  /** The results that were asked for, in their order; null for one that is missing. */
  readonly frames: readonly Json[];
  /** Everything else: a refusal, or noise. One line each. */
  readonly text: readonly string[];
}

/** One command and its answer, without what belongs to the router's owner. */
export interface RecordedCommand extends RecordedAnswer {
  readonly step: string;
  readonly command: string;
  /** `torn` where the answer was lost: whether it ran is not known. */
  readonly end: "ended" | "torn";
  readonly ms: number;
}

/** A reboot of the router between two commands. */
export interface RecordedReboot {
  readonly step: string;
  readonly event: "reboot";
}

/** One entry of a transcript. */
export type Recorded = RecordedCommand | RecordedReboot;

/** What an acceptance run found on one router. */
export interface AcceptanceReport {
  /** The version of rds-csi. */
  readonly driver: string;
  readonly router: {
    /** As `/system resource` prints it. */
    readonly version: string;
    /** The model, "" for one that is not known. */
    readonly board: string;
    readonly poolFilesystem: "btrfs" | "xfs";
    readonly poolBytes: number;
  };
  readonly steps: readonly ReportedStep[];
  readonly commands: readonly CommandTimes[];
  /** As a probe writes it; undefined where the probe failed. */
  readonly profile?: Json;
  /** The ids that the run gave to its volumes and snapshots, its cluster's hash, and its prefix of NQNs. */
  readonly own: OwnMarks;
  readonly transcript: readonly Recorded[];
}

/** By what a run's own objects are told from others on the router. */
export interface OwnMarks {
  readonly ids: readonly string[];
  /** Eight hex digits. */
  readonly cluster: string;
  readonly nqnPrefix: string;
}

/** Formats a report as JSON, one entry of the transcript a line. */
export function formatReport({ transcript, ...report }: AcceptanceReport): string {
  const head = JSON.stringify({ format: reportFormat, ...report }, null, 2).replace(/\n}$/, "");
  const lines = transcript.map((entry) => `    ${JSON.stringify(entry)}`);
  return `${head},\n  "transcript": [\n${lines.join(",\n")}\n  ]\n}\n`;
}

/**
 * Parses a report.
 *
 * @throws {RangeError} when it is none, or lacks something
 */
export function parseReport(text: string): AcceptanceReport {
  const { format, ...report } = parseObject(text, "acceptance report") as
    & { format?: unknown }
    & Partial<AcceptanceReport>;
  if (format !== reportFormat) {
    throw new RangeError(`It is no acceptance report: its format is not ${reportFormat}.`);
  }
  const { driver, router, steps, commands, own, transcript } = report;
  const isWhole = typeof driver === "string" && isObject(router) && isObject(own) &&
    [steps, commands, transcript, own.ids].every(Array.isArray) &&
    [router.version, router.board, own.cluster, own.nqnPrefix].every((part) => typeof part === "string") &&
    Number.isSafeInteger(router.poolBytes) && ["btrfs", "xfs"].includes(router.poolFilesystem);
  const hasEntries = transcript?.every((entry) => {
    if (!isObject(entry)) return false;
    if ("event" in entry) return entry.event === "reboot";
    const { command, frames, text, ms } = entry;
    return typeof command === "string" && typeof ms === "number" && [frames, text].every(Array.isArray);
  });
  if (!isWhole || !hasEntries) {
    throw new RangeError("The acceptance report lacks a part, or has one of another type.");
  }
  return report as AcceptanceReport;
}
