import type { EventListener } from "./event_listener.ts";
import type { HealthProblem } from "../model/health.ts";
import type { Connection } from "./node_ports.ts";

/** Why a device was not formatted, for counting: a closed set of words. */
export const formatRefusals = [
  /** An end or the signatures could not be read. */
  "unreadable",
  "other-filesystem",
  /** The file system that was made or mounted here is gone. */
  "filesystem-lost",
  "unknown-data",
  "read-only",
  /** The volume is not on record as never written. */
  "not-blank-on-record",
  "other-epoch",
  "other-size",
  /** Not the device that formatting was started on. */
  "other-device",
  /** Somebody has it open or claimed, perhaps an earlier mkfs. */
  "in-use",
] as const;

/** One of {@linkcode formatRefusals}. */
export type FormatRefusal = typeof formatRefusals[number];

/** What a node meets a stale mount in: one whose device is gone or another one, or whose file system does not answer. */
export const staleMountFinders = ["stage", "publish", "stats"] as const;

/** One of {@linkcode staleMountFinders}. */
export type StaleMountFinder = typeof staleMountFinders[number];

/** How a trim of a volume's file system ended. */
export const trimOutcomes = [
  "ok",
  "failed",
  /** The device takes no discards. */
  "unsupported",
] as const;

/** One of {@linkcode trimOutcomes}. */
export type TrimOutcome = typeof trimOutcomes[number];

/** Something that happens on a node and is worth counting. */
export type NodeEvent =
  /** An action was refused because what is there is not provably the volume. Once an action. */
  | { readonly kind: "identity-mismatch" }
  /** A device was not formatted though there is no file system to mount. */
  | { readonly kind: "format-refused"; readonly reason: FormatRefusal }
  /** A volume that was not connected was, or was not. */
  | { readonly kind: "connected"; readonly outcome: "ok" | "failed" }
  /** The paths to a volume on record as staged, as they were seen just now. */
  | { readonly kind: "connections"; readonly volumeId: string; readonly connections: readonly Connection[] }
  /** What is wrong with a volume on record as staged, as it was judged just now; nothing when it is well. */
  | { readonly kind: "health"; readonly volumeId: string; readonly problems: readonly HealthProblem[] }
  | { readonly kind: "stale-mount"; readonly finder: StaleMountFinder }
  /** A tool, or a file operation (`file`), was given up and is still there: the kernel does not let go of it. */
  | { readonly kind: "operation-hung"; readonly operation: string }
  /** Whether what is written to that volume waits in a map for its device, as it was seen just now. */
  | { readonly kind: "waiting"; readonly volumeId: string; readonly waits: boolean }
  /** What has waited in a map for longer than `ctrlLossTmo` was made to fail. */
  | { readonly kind: "wait-given-up" }
  /** A volume's file system has told its device of so many unused bytes, at that time since the Unix epoch, or has not. */
  | { readonly kind: "trimmed"; readonly outcome: TrimOutcome; readonly bytes: bigint; readonly atMs: number }
  /** A volume that another node holds by now was taken off this one. */
  | { readonly kind: "fenced-torn-down" }
  /** Whether that volume is staged here, as the node's state says now. */
  | { readonly kind: "staged"; readonly volumeId: string; readonly staged: boolean }
  /** That device (`major:minor`) is known to be the volume's, right now. */
  | { readonly kind: "device"; readonly volumeId: string; readonly deviceNumber: string }
  /** A tool ended, or was left behind, after so many seconds. */
  | { readonly kind: "tool-ran"; readonly tool: string; readonly seconds: number }
  /** For so many seconds at least one tool ran, and now none does. */
  | { readonly kind: "tools-rested"; readonly seconds: number };

/** Hears what happens on a node. */
export type NodeEvents = EventListener<NodeEvent>;
