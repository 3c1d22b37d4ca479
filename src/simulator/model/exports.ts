import type { Clock } from "../../volume/ports.ts";
import { type Disk, servedNqn } from "./disk.ts";
import type { Exporter } from "./exporter.ts";

/** Follows the disks and serves what they export: withdrawn at once, or, on some routers, only after a while. */
export class Exports {
  readonly #clock: Clock;
  readonly #exporter: Exporter;
  readonly #locate: (filePath: string) => string | undefined;
  readonly #lingerMs: () => number;
  /** NQNs served now; the timer of those that linger. */
  readonly #served = new Map<string, (() => void) | undefined>();

  constructor(
    clock: Clock,
    exporter: Exporter,
    locate: (filePath: string) => string | undefined,
    lingerMs: () => number,
  ) {
    this.#clock = clock;
    this.#exporter = exporter;
    this.#locate = locate;
    this.#lingerMs = lingerMs;
  }

  /** NQNs that an initiator can reach now, lingering ones too. */
  list(): readonly string[] {
    return [...this.#served.keys()].toSorted();
  }

  /** Takes note that a disk has changed. */
  follow(before: Disk | undefined, after: Disk | undefined): void {
    const old = servedNqn(before);
    const now = servedNqn(after);
    if (old !== undefined && old !== now) this.#withdraw(old);
    if (after === undefined || now === undefined) return;
    if (old === now && before?.filePath === after.filePath) return;
    this.#served.get(now)?.();
    this.#served.set(now, undefined);
    this.#exporter.serve(now, this.#locate(after.filePath));
  }

  /** Ends every export at once, also what lingers. */
  clear(): void {
    for (const nqn of [...this.#served.keys()]) this.#end(nqn);
  }

  #withdraw(nqn: string): void {
    const lingerMs = this.#lingerMs();
    if (lingerMs === 0) return this.#end(nqn);
    if (this.#served.has(nqn)) this.#served.set(nqn, this.#clock.timer(lingerMs, () => this.#end(nqn)));
  }

  #end(nqn: string): void {
    const cancel = this.#served.get(nqn);
    if (!this.#served.delete(nqn)) return;
    cancel?.();
    this.#exporter.withdraw(nqn);
  }
}
