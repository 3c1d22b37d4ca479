import type { FormatRefusal } from "../rules/format.ts";
import type { HealthProblem } from "../model/health.ts";
import type { Connection } from "./node_ports.ts";

/** What a node meets a stale mount in: one whose device is gone or another one, or whose file system does not answer. */
export const staleMountFinders = ["stage", "publish", "stats"] as const;

/** One of {@linkcode staleMountFinders}. */
export type StaleMountFinder = typeof staleMountFinders[number];

/**
 * What happens on a node and is worth counting, told to whoever counts. No method throws, waits, or changes what is done.
 */
export interface NodeEvents {
  /** An action was refused because what is there is not provably the volume. Once an action. */
  identityMismatch(): void;
  /** A device was not formatted though there is no file system to mount. */
  formatRefused(reason: FormatRefusal): void;
  /** A volume that was not connected was, or was not. */
  connected(outcome: "ok" | "failed"): void;
  /** The paths to a volume on record as staged, as they were seen just now. */
  connectionsSeen(volumeId: string, connections: readonly Connection[]): void;
  /** What is wrong with a volume on record as staged, as it was judged just now; nothing when it is well. */
  healthSeen(volumeId: string, problems: readonly HealthProblem[]): void;
  staleMountMet(finder: StaleMountFinder): void;
  /** A tool, or a file operation (`file`), was given up and is still there: the kernel does not let go of it. */
  operationHung(operation: string): void;
  /** A volume that another node holds by now was taken off this one. */
  fencedTornDown(): void;
  /** Whether that volume is staged here, as the node's state says now. */
  stagedChanged(volumeId: string, staged: boolean): void;
  /** That device (`major:minor`) is known to be the volume's, right now. */
  deviceSeen(volumeId: string, deviceNumber: string): void;
  /** A tool ended, or was left behind, after so many seconds. */
  toolRan(tool: string, seconds: number): void;
  /** For so many seconds at least one tool ran, and now none does. */
  toolsRested(seconds: number): void;
}

/** Counts nothing. */
export const uncounted: NodeEvents = {
  identityMismatch() {},
  formatRefused() {},
  connected() {},
  connectionsSeen() {},
  healthSeen() {},
  staleMountMet() {},
  operationHung() {},
  fencedTornDown() {},
  stagedChanged() {},
  deviceSeen() {},
  toolRan() {},
  toolsRested() {},
};

/** Tells several. */
export function tellingOfNode(...listeners: readonly NodeEvents[]): NodeEvents {
  const all = (tell: (listener: NodeEvents) => void) => listeners.forEach(tell);
  return {
    identityMismatch: () => all((one) => one.identityMismatch()),
    formatRefused: (reason) => all((one) => one.formatRefused(reason)),
    connected: (outcome) => all((one) => one.connected(outcome)),
    connectionsSeen: (volumeId, connections) => all((one) => one.connectionsSeen(volumeId, connections)),
    healthSeen: (volumeId, problems) => all((one) => one.healthSeen(volumeId, problems)),
    staleMountMet: (finder) => all((one) => one.staleMountMet(finder)),
    operationHung: (operation) => all((one) => one.operationHung(operation)),
    fencedTornDown: () => all((one) => one.fencedTornDown()),
    stagedChanged: (volumeId, staged) => all((one) => one.stagedChanged(volumeId, staged)),
    deviceSeen: (volumeId, deviceNumber) => all((one) => one.deviceSeen(volumeId, deviceNumber)),
    toolRan: (tool, seconds) => all((one) => one.toolRan(tool, seconds)),
    toolsRested: (seconds) => all((one) => one.toolsRested(seconds)),
  };
}
