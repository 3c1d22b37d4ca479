import type { EventListener } from "./event_listener.ts";
import type { HealthProblem } from "../model/health/health.ts";
import type { Connection } from "./node_ports.ts";

/** Why a device was not formatted: a closed set of words for counting. */
export const formatRefusals = [
  /** An end or the signatures could not be read. */
  "unreadable",
  "other-filesystem",
  /** The file system that was made or mounted here is gone. */
  "filesystem-lost",
  "unknown-data",
  "read-only",
  /** The record does not say that the volume was never written. */
  "not-blank-on-record",
  "other-epoch",
  "other-size",
  /** Not the device on which mkfs was started. */
  "other-device",
  /** The device is open or claimed, perhaps by an earlier mkfs. */
  "in-use",
] as const;

/** One of {@linkcode formatRefusals}. */
export type FormatRefusal = typeof formatRefusals[number];

/** The call that found a stale mount: one whose device is gone or another one, or whose file system does not answer. */
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

/** An event on a node that is counted. */
export type NodeEvent =
  /** An action was refused because the device is not provably the volume. Once for each action. */
  | { readonly kind: "identity-mismatch" }
  /** A device was not formatted although there is no file system to mount. */
  | { readonly kind: "format-refused"; readonly reason: FormatRefusal }
  /** A passphrase did not open a volume. */
  | { readonly kind: "passphrase-refused" }
  /** A connect of a volume that was not connected succeeded or failed. */
  | { readonly kind: "connected"; readonly outcome: "ok" | "failed" }
  /** The paths to a volume recorded as staged, as just read. */
  | { readonly kind: "connections"; readonly volumeId: string; readonly connections: readonly Connection[] }
  /** The problems of a volume recorded as staged, as just judged; none when it is healthy. */
  | { readonly kind: "health"; readonly volumeId: string; readonly problems: readonly HealthProblem[] }
  | { readonly kind: "stale-mount"; readonly finder: StaleMountFinder }
  /** A tool, or a file operation (`file`), was given up and still hangs in the kernel. */
  | { readonly kind: "operation-hung"; readonly operation: string }
  /** Whether writes to that volume wait in a map for its device, as just read. */
  | { readonly kind: "waiting"; readonly volumeId: string; readonly waits: boolean }
  /** I/O that had waited in a map for longer than `ctrlLossTmo` was failed. */
  | { readonly kind: "wait-given-up" }
  /**
   * A trim of a volume's file system ended. It reported so many unused bytes to its device, at that time since the Unix
   * epoch.
   */
  | { readonly kind: "trimmed"; readonly outcome: TrimOutcome; readonly bytes: bigint; readonly atMs: number }
  /** A volume that another node holds now was taken off this node. */
  | { readonly kind: "fenced-torn-down" }
  /** Whether that volume is staged here, according to the node's state file; of a directory, whether it is published. */
  | { readonly kind: "staged"; readonly volumeId: string; readonly staged: boolean }
  /** That device (`major:minor`) is the volume's right now. */
  | { readonly kind: "device"; readonly volumeId: string; readonly deviceNumber: string }
  /** A tool ended, or was left behind, after so many seconds. */
  | { readonly kind: "tool-ran"; readonly tool: string; readonly seconds: number };

/** Receives the events of a node. */
export type NodeEvents = EventListener<NodeEvent>;
