import type { Answer } from "../console/exchange.ts";

/**
 * By how much less an uptime may have grown than this process's clock, in milliseconds: routers print whole seconds, and
 * answers take time. No router boots faster.
 */
const slackMs = 5_000;

/** When and on which connection an answer came. */
type Arrival = Pick<Answer, "connection" | "receivedMs">;

/** The uptime of a router as its last answer with one told it. */
export class RouterUptime {
  // Not the answer itself, which may have thousands of disks.
  #last: Arrival & { readonly upMs: number } | undefined;

  /** Notes the uptime in an answer, in milliseconds. Returns whether the router has booted since the one before. */
  note({ connection, receivedMs }: Arrival, upMs: number): boolean {
    const last = this.#last;
    this.#last = { upMs, connection, receivedMs };
    // No connection outlives a reboot.
    if (last === undefined || connection <= last.connection) return false;
    return upMs < last.upMs + (receivedMs - last.receivedMs) - slackMs;
  }

  /**
   * The uptime in milliseconds when an answer came, as an earlier one of the same connection tells; undefined when none
   * does. On one connection uptime only grows with the clock. It is never more than the real uptime.
   */
  carriedMs({ connection, receivedMs }: Arrival): number | undefined {
    if (this.#last?.connection !== connection) return undefined;
    return this.#last.upMs + Math.max(0, receivedMs - this.#last.receivedMs);
  }
}
