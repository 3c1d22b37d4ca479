import type { Clock } from "../../volume/ports/ports.ts";
import { ControllerBoard } from "./controller_status_store.ts";
import { Courses } from "./operation_statistics.ts";
import { NodeBoard } from "./node_status_store.ts";
import { Recent } from "./recent.ts";
import type { DriverFacts, FailedCall, Happening, Status, StatusQuery } from "./model.ts";

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
