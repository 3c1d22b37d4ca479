import type { Clock } from "../../volume/ports/system.ts";
import {
  type ControllerStatus,
  type DriverFacts,
  type FailedCall,
  type Happening,
  pageOf,
  type Status,
  type StatusQuery,
  type VolumeStatus,
} from "./model.ts";
import { NodeBoard } from "./node_status_store.ts";
import { Courses, Recent } from "./operation_statistics.ts";
import { RouterBoard } from "./router_status_store.ts";

/** How many events and failed calls are kept. */
const mostHappenings = 50;
const mostFailedCalls = 20;
/** A message is cut there, in characters: it is for a person, and the log has all of it. */
const mostMessage = 600;

/** An answered call, as far as it is shown. */
export interface ShownCall {
  readonly requestId: string;
  /** gRPC path, such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
  readonly volumeId: string | undefined;
  readonly code: string;
  readonly durationMs: number;
  /** What the caller was told. */
  readonly message: string;
}

/**
 * Keeps what a driver knows of itself, so that it can be shown without asking anybody: told of events, it never looks.
 * It is small; the page that is made of it is loaded when somebody reads it.
 */
export class StatusBoard {
  readonly #facts: DriverFacts;
  readonly #clock: Pick<Clock, "now">;
  readonly #startedAtMs: number;
  readonly #happenings = new Recent<Happening>(mostHappenings);
  readonly #failedCalls = new Recent<FailedCall>(mostFailedCalls);
  readonly #calls = new Courses();
  #controller: ControllerBoard | undefined;
  #node: NodeBoard | undefined;

  constructor(facts: DriverFacts, clock: Pick<Clock, "now">) {
    this.#facts = facts;
    this.#clock = clock;
    this.#startedAtMs = clock.now();
  }

  /** What a controller knows; from the first time on it is shown. */
  get controller(): ControllerBoard {
    return this.#controller ??= new ControllerBoard(this.#facts, this.#nowMs, this.#tell);
  }

  /** What a node knows; from the first time on it is shown. */
  get node(): NodeBoard {
    return this.#node ??= new NodeBoard(this.#facts.nodeId ?? "", this.#nowMs, this.#tell);
  }

  /** A call was answered. */
  called({ path, requestId, volumeId, code, durationMs, message }: ShownCall): void {
    const method = path.slice(path.lastIndexOf("/") + 1);
    this.#calls.add(method, durationMs, code === "OK");
    if (code === "OK") return;
    const shown = { requestId, method, volumeId, code, durationMs, message: message.slice(0, mostMessage) };
    this.#failedCalls.add({ atMs: this.#clock.now(), ...shown });
  }

  /** All of it, and the part of the volumes that is asked for. */
  read(query: StatusQuery, verdict: Pick<Status, "failure" | "unreadiness">): Status {
    return {
      atMs: this.#clock.now(),
      startedAtMs: this.#startedAtMs,
      driver: this.#facts,
      ...verdict,
      controller: this.#controller?.read(query),
      node: this.#node?.read(query),
      calls: this.#calls.read(),
      failedCalls: this.#failedCalls.latestFirst(),
      happenings: this.#happenings.latestFirst(),
    };
  }

  readonly #nowMs = () => this.#clock.now();

  readonly #tell = (happening: Happening) =>
    this.#happenings.add({ ...happening, message: happening.message.slice(0, mostMessage) });
}

/** Keeps what a controller knows. */
class ControllerBoard {
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
