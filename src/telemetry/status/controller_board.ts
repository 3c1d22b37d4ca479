import type { AuditKind } from "../../volume/audit_finding.ts";
import type { ControllerEvent, ControllerEvents } from "../../volume/controller_events.ts";
import { eventText } from "../../volume/event_text.ts";
import type { Figures } from "../../volume/figures.ts";
import type { HealthProblem } from "../../volume/health.ts";
import { RouterBoard } from "./router_board.ts";
import {
  type ControllerStatus,
  type DriverFacts,
  type Happening,
  pageOf,
  type StatusQuery,
  type VolumeStatus,
} from "./status.ts";

/** Keeps what a controller knows. */
export class ControllerBoard implements ControllerEvents {
  readonly #nowMs: () => number;
  readonly #facts: DriverFacts;
  readonly #tell: (happening: Happening) => void;
  readonly #routers = new Map<string, RouterBoard>();
  readonly #unwell = new Map<string, readonly HealthProblem[]>();
  #audit: ControllerStatus["audit"];

  constructor(facts: DriverFacts, nowMs: () => number, tell: (happening: Happening) => void) {
    this.#facts = facts;
    this.#nowMs = nowMs;
    this.#tell = tell;
  }

  /** The board of a router by its name in the facts; a new one where there is none yet. */
  router(name = this.#firstRouter): RouterBoard {
    let board = this.#routers.get(name);
    if (board === undefined) this.#routers.set(name, board = new RouterBoard(this.#nowMs));
    return board;
  }

  happened(event: ControllerEvent): void {
    const { type, reason, message } = eventText(event);
    const volumeId = "volumeId" in event ? event.volumeId : undefined;
    this.#tell({ atMs: this.#nowMs(), warning: type === "Warning", reason, message, volumeId });
    if (event.kind !== "health") return;
    if (event.problems.length === 0) this.#unwell.delete(event.volumeId);
    else this.#unwell.set(event.volumeId, event.problems);
  }

  audited(counts: ReadonlyMap<AuditKind, number> | undefined): void {
    this.#audit = counts && { atMs: this.#nowMs(), found: Object.fromEntries(counts) };
    // Whoever does not lead hears of no health either, and what it heard is of another time.
    if (counts === undefined) this.#unwell.clear();
  }

  looked(figures: Figures, atMs: number): void {
    this.router().looked(figures, atMs);
  }

  read(query: StatusQuery): ControllerStatus {
    const volumes = [...this.#routers].flatMap(([router, board]) =>
      board.volumes.map((volume): VolumeStatus => ({
        ...volume,
        router,
        problems: this.#unwell.get(volume.id) ?? [],
      }))
    ).toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return {
      leads: undefined,
      routers: [...this.#routers].map(([name, board]) => board.read(name, this.#facts.routers[name] ?? "")),
      volumes: pageOf(volumes, query, wordsOf),
      attachments: volumes.reduce((sum, { holders }) => sum + holders.length, 0),
      migrations: volumes.filter(({ migrating }) => migrating).length,
      unwell: volumes.filter(({ problems }) => problems.length > 0).length,
      audit: this.#audit,
    };
  }

  get #firstRouter(): string {
    return Object.keys(this.#facts.routers)[0] ?? "";
  }
}

function wordsOf({ id, router, basePath, holders, problems }: VolumeStatus): readonly string[] {
  return [
    id,
    router,
    basePath,
    ...holders.map(({ nodeId }) => nodeId),
    ...problems.map(({ reason }) => reason),
  ];
}
