import type { WholeInventory } from "../../volume/rules/totals.ts";
import type { RouterInfo } from "../console/router_info.ts";

/** The result of one exec request. */
export interface CommandEvent {
  /** Its purpose: `view`, `inventory`, `change`, … */
  readonly kind: string;
  /** The call that sent it; the first one for a read that several calls share. */
  readonly requestId: string;
  /**
   * `ended` properly, `torn` without notice, `timeout`, `cancelled` while it ran, `not-run` because no channel could be
   * opened.
   */
  readonly outcome: "ended" | "torn" | "timeout" | "cancelled" | "not-run";
  /** Milliseconds from sending to the end. */
  readonly ms: number;
  readonly statements: number;
  /** Requests still in the queue. */
  readonly queued: number;
}

/** A change of a session's state, see `Session`. */
export interface ConnectionEvent {
  readonly state: "idle" | "connecting" | "ready" | "backing-off" | "closed";
  /** The reason, if there is one. */
  readonly reason: string | undefined;
}

/** A change of a session's circuit breaker, see `CircuitBreaker`; also each failed attempt while it is not closed. */
export interface BreakerEvent {
  readonly state: "closed" | "open" | "trying";
  /** Why the last attempt failed; undefined when it did not. */
  readonly cause: string | undefined;
  /** Failures in a row. */
  readonly failures: number;
  /** When it is open: no attempt is made before this `Clock.now()` time. */
  readonly nextTryAtMs: number | undefined;
}

/** Receives what the client does, for logs and metrics. Nothing depends on it; it must not throw. */
export interface RouterObserver {
  /** After each exec request. */
  command?(event: CommandEvent): void;
  /** After each change of the connection's state. */
  connection?(event: ConnectionEvent): void;
  /** When requests begin to be refused at once because the router cannot be reached, and when that ends. */
  breaker?(event: BreakerEvent): void;
  /** When the router has first reported its version, or another one than before. */
  identified?(router: RouterInfo): void;
  /** With the first answer of a router that has booted since the last one, before that answer is used. */
  booted?(): void;
  /** After each read of every disk, by any caller. */
  inventory?(reading: WholeInventory): void;
  /** Why the router cannot be used, once for each connection. */
  unfit?(reason: string): void;
  /** Something a person should read: a host key that is not checked, an answer that had to be read in parts. */
  warning?(message: string): void;
}

/** An observer that passes everything to several others. */
export function observedBy(...observers: readonly RouterObserver[]): RouterObserver {
  const reporting = <Event>(report: (observer: RouterObserver, event: Event) => void) => (event: Event) =>
    observers.forEach((observer) => report(observer, event));
  return {
    command: reporting((observer, event) => observer.command?.(event)),
    connection: reporting((observer, event) => observer.connection?.(event)),
    breaker: reporting((observer, event) => observer.breaker?.(event)),
    identified: reporting((observer, event) => observer.identified?.(event)),
    booted: () => observers.forEach((observer) => observer.booted?.()),
    inventory: reporting((observer, event) => observer.inventory?.(event)),
    unfit: reporting((observer, event) => observer.unfit?.(event)),
    warning: reporting((observer, event) => observer.warning?.(event)),
  };
}
