import { RouterBoard } from "./router_status_store.ts";
import {
  type ControllerStatus,
  type DriverFacts,
  type Happening,
  pageOf,
  type StatusQuery,
  type VolumeStatus,
} from "./model.ts";

/** Keeps what a controller knows. */
export class ControllerBoard {
  readonly #facts: DriverFacts;
  readonly #nowMs: () => number;
  readonly #tell: (happening: Happening) => void;
  readonly #routers = new Map<string, RouterBoard>();
  #leads: boolean | undefined;

  constructor(facts: DriverFacts, nowMs: () => number, tell: (happening: Happening) => void) {
    this.#facts = facts;
    this.#nowMs = nowMs;
    this.#tell = tell;
  }

  /** The board of a router by its name in the facts, by default of the first; from the first time on it is shown. */
  router(name = Object.keys(this.#facts.routers)[0] ?? ""): RouterBoard {
    let board = this.#routers.get(name);
    if (board === undefined) this.#routers.set(name, board = new RouterBoard(name, this.#nowMs, this.#tell));
    return board;
  }

  /** Whether this process is the one of several controllers that works; never told where there is no election. */
  leads(isLeading: boolean): void {
    this.#leads = isLeading;
  }

  read(query: StatusQuery): ControllerStatus {
    const volumes = [...this.#routers.values()].flatMap((board) => board.volumes)
      .toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return {
      leads: this.#leads,
      routers: [...this.#routers].map(([name, board]) => board.read(this.#facts.routers[name] ?? "")),
      volumes: pageOf(volumes, query, wordsOf),
      attachments: volumes.reduce((sum, { holders }) => sum + holders.length, 0),
      migrations: volumes.filter(({ migrating }) => migrating).length,
      unwell: volumes.filter(({ problems }) => problems.length > 0).length,
    };
  }
}

function wordsOf({ id, router, basePath, holders, problems }: VolumeStatus): readonly string[] {
  return [
    ...[id, router, basePath],
    ...holders.map(({ nodeId }) => nodeId),
    ...problems.map(({ reason }) => reason),
  ];
}
