import type { FormatRefusal } from "../../volume/rules/format.ts";
import type { HealthProblem } from "../../volume/model/health.ts";
import type { Connection, NodeEvents, StaleMountFinder } from "../../volume/ports/ports.ts";
import { type Happening, type NodeStatus, pageOf, type StagedVolume, type StatusQuery } from "./model.ts";

/** Keeps what a node knows. */
export class NodeBoard implements NodeEvents {
  readonly #nodeId: string;
  readonly #nowMs: () => number;
  readonly #tell: (happening: Happening) => void;
  readonly #staged = new Map<string, StagedVolume>();
  #registration: NodeStatus["registration"];

  constructor(nodeId: string, nowMs: () => number, tell: (happening: Happening) => void) {
    this.#nodeId = nodeId;
    this.#nowMs = nowMs;
    this.#tell = tell;
  }

  identityMismatch(): void {
    this.#warn("IdentityMismatch", "An action was refused as what is there is not provably the volume");
  }

  formatRefused(reason: FormatRefusal): void {
    this.#warn("FormatRefused", `A device was not formatted though it holds no file system: ${reason}`);
  }

  connected(outcome: "ok" | "failed"): void {
    if (outcome === "failed") this.#warn("ConnectFailed", "A volume could not be connected");
  }

  connectionsSeen(volumeId: string, connections: readonly Connection[]): void {
    const paths = connections.map(({ address, port, stateName: state }) => ({ address, port, state }));
    this.#change(volumeId, { seenAtMs: this.#nowMs(), paths });
  }

  healthSeen(volumeId: string, problems: readonly HealthProblem[]): void {
    const before = this.#staged.get(volumeId)?.problems.map(({ reason }) => reason).join();
    const [first] = problems;
    if (first !== undefined && before !== problems.map(({ reason }) => reason).join()) {
      this.#warn(first.reason, problems.map(({ message }) => message).join("; "), volumeId);
    }
    this.#change(volumeId, { seenAtMs: this.#nowMs(), problems });
  }

  staleMountMet(finder: StaleMountFinder): void {
    this.#warn("StaleMount", `A mount was met whose device is gone or another one: at ${finder}`);
  }

  operationHung(operation: string): void {
    this.#warn("OperationHung", `The kernel did not let go of an operation in time: ${operation}`);
  }

  fencedTornDown(): void {
    this.#warn("FencedVolume", "A volume was taken off this node as another one holds it");
  }

  stagedChanged(volumeId: string, staged: boolean): void {
    if (!staged) this.#staged.delete(volumeId);
    else if (!this.#staged.has(volumeId)) {
      this.#staged.set(volumeId, { id: volumeId, seenAtMs: undefined, paths: [], problems: [] });
    }
  }

  deviceSeen(): void {}

  toolRan(): void {}

  toolsRested(): void {}

  /** The kubelet has said that the driver is registered, or that it could not be. */
  notified(outcome: "ok" | "failed"): void {
    this.#registration = { state: outcome === "ok" ? "registered" : "refused", atMs: this.#nowMs() };
  }

  /** The kubelet cannot know of the driver any more. */
  lost(): void {
    this.#registration = { state: "lost", atMs: this.#nowMs() };
  }

  /** The driver is to register itself, and the kubelet has not said anything yet. */
  registering(): void {
    this.#registration = { state: "offered", atMs: this.#nowMs() };
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
    this.#tell({ atMs: this.#nowMs(), warning: true, reason, message, volumeId });
  }
}

/** Whether something is wrong with a staged volume, by what was seen last. */
export function isUnwell({ problems, paths, seenAtMs }: StagedVolume): boolean {
  return problems.length > 0 || (seenAtMs !== undefined && !paths.some(({ state }) => state === "live"));
}
