import type { HealthProblem } from "../../volume/model/health/health.ts";
import type { NodeEvent, NodeEvents } from "../../volume/ports/node_events.ts";
import { type NodeStatus, pageOf, type StagedVolume, type StatusEvent, type StatusQuery } from "./model.ts";

/** Keeps the state of a node. */
export class NodeStatusStore implements NodeEvents {
  readonly #nodeId: string;
  readonly #nowMs: () => number;
  readonly #report: (statusEvent: StatusEvent) => void;
  readonly #staged = new Map<string, StagedVolume>();
  #registration: NodeStatus["registration"];

  constructor(nodeId: string, nowMs: () => number, report: (statusEvent: StatusEvent) => void) {
    this.#nodeId = nodeId;
    this.#nowMs = nowMs;
    this.#report = report;
  }

  occurred(event: NodeEvent): void {
    switch (event.kind) {
      case "identity-mismatch":
        return this.#warn(
          "IdentityMismatch",
          "An action was refused because the device is not proven to be the volume",
        );
      case "format-refused":
        return this.#warn(
          "FormatRefused",
          `A device without a file system was not formatted: ${event.reason}`,
        );
      case "connected":
        if (event.outcome === "failed") this.#warn("ConnectFailed", "A volume could not be connected");
        return;
      case "connections": {
        const paths = event.connections.map(({ address, port, stateName: state }) => ({
          address,
          port,
          state,
        }));
        return this.#change(event.volumeId, { seenAtMs: this.#nowMs(), paths });
      }
      case "health":
        return this.#judged(event.volumeId, event.problems);
      case "stale-mount":
        return this.#warn(
          "StaleMount",
          `The device of a mount is gone or has changed: found at ${event.finder}`,
        );
      case "operation-hung":
        return this.#warn(
          "OperationHung",
          `An operation hung in the kernel after its timeout: ${event.operation}`,
        );
      case "fenced-torn-down":
        return this.#warn(
          "FencedVolume",
          "A volume was cut off from this node because another node holds it",
        );
      case "waiting":
        if (event.waits) {
          this.#warn("DeviceWaiting", "Writes to a volume wait for its device", event.volumeId);
        }
        return;
      case "wait-given-up":
        return this.#warn(
          "WaitGivenUp",
          "Writes that waited for their device for longer than ctrlLossTmo have failed",
        );
      case "staged":
        return this.#stagedChanged(event.volumeId, event.staged);
    }
  }

  #judged(volumeId: string, problems: readonly HealthProblem[]): void {
    const before = this.#staged.get(volumeId)?.problems.map(({ reason }) => reason).join();
    const [first] = problems;
    if (first !== undefined && before !== problems.map(({ reason }) => reason).join()) {
      this.#warn(first.reason, problems.map(({ message }) => message).join("; "), volumeId);
    }
    this.#change(volumeId, { seenAtMs: this.#nowMs(), problems });
  }

  #stagedChanged(volumeId: string, staged: boolean): void {
    if (!staged) this.#staged.delete(volumeId);
    else if (!this.#staged.has(volumeId)) {
      this.#staged.set(volumeId, { id: volumeId, seenAtMs: undefined, paths: [], problems: [] });
    }
  }

  /** Notes what the kubelet made of the driver's registration; "offered" until it has answered. */
  registration(state: string): void {
    this.#registration = { state, atMs: this.#nowMs() };
  }

  read(query: StatusQuery): NodeStatus {
    const volumes = [...this.#staged.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return {
      nodeId: this.#nodeId,
      volumes: pageOf(volumes, query, ({ id, problems, paths }) => [
        id,
        ...problems.map(({ reason }) => reason),
        ...paths.map(({ address, state }) => `${address} ${state}`),
      ]),
      unwell: volumes.filter(isUnwell).length,
      registration: this.#registration,
    };
  }

  #change(volumeId: string, change: Partial<StagedVolume>): void {
    const known = this.#staged.get(volumeId);
    if (known !== undefined) this.#staged.set(volumeId, { ...known, ...change });
  }

  #warn(reason: string, message: string, volumeId?: string): void {
    this.#report({ atMs: this.#nowMs(), warning: true, reason, message, volumeId });
  }
}

/** Whether a staged volume had problems when it was last read. */
export function isUnwell({ problems, paths, seenAtMs }: StagedVolume): boolean {
  return problems.length > 0 || (seenAtMs !== undefined && !paths.some(({ state }) => state === "live"));
}
