import type { WholeInventory } from "../../volume/rules/totals.ts";
import type { RouterInfo } from "../console/router_info.ts";

/** What became of one exec request. */
export interface CommandEvent {
  /** What it was for: `view`, `inventory`, `change`, … */
  readonly kind: string;
  /** The call that it was sent for; of a read that several share, the first. */
  readonly requestId: string;
  /** `ended` in order, `torn` without a word, `timeout`, `cancelled` while it ran, `not-run` as no channel was to be had. */
  readonly outcome: "ended" | "torn" | "timeout" | "cancelled" | "not-run";
  /** Milliseconds from sending to the end. */
  readonly ms: number;
  /** Milliseconds it had waited in the queue. */
  readonly waitedMs: number;
  readonly statements: number;
  /** Requests still in the queue. */
  readonly queued: number;
}

/** A change of a session's state, see `Session`. */
export interface ConnectionEvent {
  readonly state: "idle" | "connecting" | "ready" | "backing-off" | "closed";
  /** Why, when there is something to say. */
  readonly reason: string | undefined;
}

/** A change of a session's circuit breaker, see `CircuitBreaker`; also each failed try while it is not closed. */
export interface BreakerEvent {
  readonly state: "closed" | "open" | "trying";
  /** Why the last try failed; undefined when it did not. */
  readonly cause: string | undefined;
  /** Failures in a row. */
  readonly failures: number;
  /** When it is open: `Clock.now()` milliseconds before which nothing is tried. */
  readonly nextTryAtMs: number | undefined;
}

/** Told what the client does, for logs and metrics. Nothing depends on it; it must not throw. */
export interface RouterObserver {
  /** After each exec request. */
  command?(event: CommandEvent): void;
  /** After each change of the connection's state. */
  connection?(event: ConnectionEvent): void;
  /** When requests begin to be refused at once as the router cannot be reached, and when that is over. */
  breaker?(event: BreakerEvent): void;
  /** When the router has said for the first time what it is, or something else than before. */
  identified?(router: RouterInfo): void;
  /** After each look at every disk, whoever asked for it. */
  inventory?(reading: WholeInventory): void;
  /** Why the router cannot be used, once a connection. */
  unfit?(reason: string): void;
  /** Something a person should read: a host key that is not checked, an answer that had to be asked for in parts. */
  warning?(message: string): void;
}

/** Tells several. */
export function observedBy(...observers: readonly RouterObserver[]): RouterObserver {
  const reporting = <Event>(report: (observer: RouterObserver, event: Event) => void) => (event: Event) =>
    observers.forEach((observer) => report(observer, event));
  return {
    command: reporting((observer, event) => observer.command?.(event)),
    connection: reporting((observer, event) => observer.connection?.(event)),
    breaker: reporting((observer, event) => observer.breaker?.(event)),
    identified: reporting((observer, event) => observer.identified?.(event)),
    inventory: reporting((observer, event) => observer.inventory?.(event)),
    unfit: reporting((observer, event) => observer.unfit?.(event)),
    warning: reporting((observer, event) => observer.warning?.(event)),
  };
}
