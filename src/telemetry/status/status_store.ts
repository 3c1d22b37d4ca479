import type { Clock } from "../../volume/ports/system.ts";
import {
  type ClaimLookup,
  type ControllerStatus,
  type DriverFacts,
  type FailedCall,
  pageOf,
  type Status,
  type StatusEvent,
  type StatusQuery,
  type VolumeStatus,
} from "./model.ts";
import { NodeStatusStore } from "./node_status_store.ts";
import { Recent } from "./recent.ts";
import { RouterStatusStore } from "./router_status_store.ts";

/** How many events and failed calls are kept. */
const maxEvents = 50;
const maxFailedCalls = 20;
/** The maximum length of a message, in characters: it is for people, and the log has all of it. */
const maxMessage = 600;

/** The shown fields of an answered call. */
export interface ShownCall extends Omit<FailedCall, "atMs" | "method"> {
  /** gRPC path, such as `/csi.v1.Controller/CreateVolume`. */
  readonly path: string;
}

/**
 * Keeps the state of a driver, so that it can be shown without asking anything: it only receives events. It is small;
 * the code of the page is loaded at the first request.
 */
export class StatusStore {
  readonly #facts: DriverFacts;
  readonly #clock: Pick<Clock, "now">;
  readonly #startedAtMs: number;
  readonly #events = new Recent<StatusEvent>(maxEvents);
  readonly #failedCalls = new Recent<FailedCall>(maxFailedCalls);
  #controller: ControllerStatusStore | undefined;
  #node: NodeStatusStore | undefined;

  constructor(facts: DriverFacts, clock: Pick<Clock, "now">) {
    this.#facts = facts;
    this.#clock = clock;
    this.#startedAtMs = clock.now();
  }

  /** The state of a controller, which is shown once this was read. */
  get controller(): ControllerStatusStore {
    return this.#controller ??= new ControllerStatusStore(this.#facts, this.#nowMs, this.#report);
  }

  /** The state of a node, which is shown once this was read. */
  get node(): NodeStatusStore {
    return this.#node ??= new NodeStatusStore(this.#facts.nodeId ?? "", this.#nowMs, this.#report);
  }

  /** Notes that a call was answered. */
  called({ path, requestId, volumeId, code, durationMs, message }: ShownCall): void {
    if (code === "OK") return;
    const method = path.slice(path.lastIndexOf("/") + 1);
    const shown = { requestId, method, volumeId, code, durationMs, message: message.slice(0, maxMessage) };
    this.#failedCalls.add({ atMs: this.#clock.now(), ...shown });
  }

  /** Why no router can be used now; undefined while one of them can, or none is known. */
  get routersAway(): string | undefined {
    return this.#controller?.routersAway;
  }

  /** The whole status, with the requested part of the volumes. */
  read(query: StatusQuery, result: Pick<Status, "failure" | "unreadiness">): Status {
    return {
      atMs: this.#clock.now(),
      startedAtMs: this.#startedAtMs,
      driver: this.#facts,
      ...result,
      controller: this.#controller?.read(query),
      node: this.#node?.read(query),
      failedCalls: this.#failedCalls.latestFirst(),
      events: this.#events.latestFirst(),
    };
  }

  readonly #nowMs = () => this.#clock.now();

  readonly #report = (statusEvent: StatusEvent) =>
    this.#events.add({ ...statusEvent, message: statusEvent.message.slice(0, maxMessage) });
}

/** Keeps the state of a controller. */
class ControllerStatusStore {
  readonly #facts: DriverFacts;
  readonly #nowMs: () => number;
  readonly #report: (statusEvent: StatusEvent) => void;
  readonly #routers = new Map<string, RouterStatusStore>();
  #leads: boolean | undefined;
  /** Called when the page is read: claims change without the router. */
  claimOf: ClaimLookup = () => undefined;

  constructor(facts: DriverFacts, nowMs: () => number, report: (statusEvent: StatusEvent) => void) {
    this.#facts = facts;
    this.#nowMs = nowMs;
    this.#report = report;
  }

  /** The store of a router by its name in the facts, by default the first; it is shown once this was called. */
  router(name = Object.keys(this.#facts.routers)[0] ?? ""): RouterStatusStore {
    let board = this.#routers.get(name);
    if (board === undefined) {
      this.#routers.set(name, board = new RouterStatusStore(name, this.#nowMs, this.#report));
    }
    return board;
  }

  /** Notes whether this process is the leader; never called without an election. */
  leads(isLeading: boolean): void {
    this.#leads = isLeading;
  }

  get routersAway(): string | undefined {
    const reasons = [...this.#routers.values()].map(({ refusing }) => refusing);
    return reasons.length > 0 && reasons.every((reason) => reason !== undefined)
      ? `calls are refused at once, because of the router ${reasons.join("; ")}`
      : undefined;
  }

  read(query: StatusQuery): ControllerStatus {
    const volumes = [...this.#routers.values()].flatMap((board) => board.volumes)
      .map((volume) => ({ ...volume, claim: this.claimOf(volume.id) }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return {
      leads: this.#leads,
      routers: [...this.#routers].map(([name, board]) =>
        board.read(this.#facts.routers[name] ?? "", this.claimOf)
      ),
      volumes: pageOf(volumes, query, wordsOf),
      attachments: volumes.reduce((sum, { holders }) => sum + holders.length, 0),
      migrations: volumes.filter(({ migrating }) => migrating).length,
      unwell: volumes.filter(({ problems }) => problems.length > 0).length,
    };
  }
}

function wordsOf({ id, claim = "", router, basePath, holders, problems }: VolumeStatus): readonly string[] {
  return [
    ...[id, claim, router, basePath],
    ...holders.map(({ nodeId }) => nodeId),
    ...problems.map(({ reason }) => reason),
  ];
}
