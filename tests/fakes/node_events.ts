import type { Connection, NodeEvents, StaleMountFinder } from "../../src/volume/ports/ports.ts";
import type { FormatRefusal } from "../../src/volume/rules/format.ts";
import type { HealthProblem } from "../../src/volume/model/health.ts";

/** Keeps what it is told, in order, as a word or two each. */
export class RecordedEvents implements NodeEvents {
  readonly told: string[] = [];
  /** The number of the device that was seen last, by volume. */
  readonly devices = new Map<string, string>();
  readonly staged = new Set<string>();
  /** What was seen last, by volume. */
  readonly connections = new Map<string, readonly Connection[]>();

  /** What was wrong when it was judged last, by volume. */
  readonly health = new Map<string, readonly string[]>();

  identityMismatch(): void {
    this.told.push("identity mismatch");
  }

  formatRefused(reason: FormatRefusal): void {
    this.told.push(`format refused: ${reason}`);
  }

  connected(outcome: "ok" | "failed"): void {
    this.told.push(`connected: ${outcome}`);
  }

  connectionsSeen(volumeId: string, connections: readonly Connection[]): void {
    this.connections.set(volumeId, connections);
  }

  healthSeen(volumeId: string, problems: readonly HealthProblem[]): void {
    this.health.set(volumeId, problems.map(({ reason }) => reason));
  }

  staleMountMet(finder: StaleMountFinder): void {
    this.told.push(`stale mount: ${finder}`);
  }

  operationHung(operation: string): void {
    this.told.push(`hung: ${operation}`);
  }

  fencedTornDown(): void {
    this.told.push("fenced torn down");
  }

  stagedChanged(volumeId: string, staged: boolean): void {
    if (staged) this.staged.add(volumeId);
    else this.staged.delete(volumeId);
  }

  deviceSeen(volumeId: string, deviceNumber: string): void {
    this.devices.set(volumeId, deviceNumber);
  }

  toolRan(): void {}

  toolsRested(): void {}
}
