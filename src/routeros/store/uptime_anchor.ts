/**
 * Carries the router's uptime from one reply to later ones of the same connection.
 *
 * No connection outlives a reboot, so on one connection uptime only grows with the clock; asking for it anew in a
 * command that is full already is not needed. The result is never more than the real uptime.
 */
export class UptimeAnchor {
  #connection = 0;
  #upMs = 0;
  #receivedMs = 0;

  /** Remembers an uptime that was read. */
  set(upMs: number, at: { readonly connection: number; readonly receivedMs: number }): void {
    this.#connection = at.connection;
    this.#upMs = upMs;
    this.#receivedMs = at.receivedMs;
  }

  /** Milliseconds of uptime at a reply; undefined when none was read on its connection. */
  upMsAt(at: { readonly connection: number; readonly receivedMs: number }): number | undefined {
    if (at.connection !== this.#connection) return undefined;
    return this.#upMs + Math.max(0, at.receivedMs - this.#receivedMs);
  }
}
