import type { Clock } from "../volume/ports/system.ts";
import type { CommandIo } from "./io.ts";

/** How often a terminal is told for how long something goes on, in milliseconds. */
const everyMs = 1000;

/** The longest line that no terminal breaks: a broken one could not be written over. */
const maxColumns = 79;

/** Says what a command that takes a while is at. */
export type Progress = (what: string) => void;

/** What {@linkcode withProgress} needs. */
export interface ProgressAdapters {
  readonly io: Pick<CommandIo, "err" | "rewrite">;
  readonly clock: Pick<Clock, "timer" | "monotonicMs">;
  /** Whether nothing is to be said: what is printed is for a program. */
  readonly quiet: boolean;
}

/**
 * Does something that takes a while and says meanwhile what it is at: at a terminal in one line that is written over and is
 * gone in the end, elsewhere in a line each.
 */
export async function withProgress<T>(
  name: string,
  { io, clock, quiet }: ProgressAdapters,
  work: (progress: Progress) => Promise<T>,
): Promise<T> {
  const { rewrite } = io;
  if (quiet) return await work(() => {});
  if (rewrite === undefined) return await work((what) => io.err(`${name}: ${what}`));
  let cancel = () => {};
  const show = (what: string, sinceMs: number) => {
    const seconds = Math.floor((clock.monotonicMs() - sinceMs) / 1000);
    const tail = seconds === 0 ? " …" : ` … ${seconds} s`;
    rewrite(`${name}: ${what}`.slice(0, maxColumns - tail.length) + tail);
    cancel = clock.timer(everyMs, () => show(what, sinceMs));
  };
  try {
    return await work((what) => {
      cancel();
      show(what, clock.monotonicMs());
    });
  } finally {
    cancel();
    rewrite("");
  }
}
