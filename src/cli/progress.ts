import type { Clock } from "../volume/ports/system.ts";
import type { CommandIo } from "./io.ts";

/** How often a terminal shows the time that something takes, in milliseconds. */
const everyMs = 1000;

/** The longest line that fits every terminal: a wrapped one could not be overwritten. */
const maxColumns = 79;

/** Shows what a long command is doing. */
export type Progress = (what: string) => void;

/** The adapters of {@linkcode withProgress}. */
export interface ProgressAdapters {
  readonly io: Pick<CommandIo, "err" | "rewrite">;
  readonly clock: Pick<Clock, "timer" | "monotonicMs">;
  /** Whether nothing is shown, because a program reads the output. */
  readonly quiet: boolean;
}

/**
 * Runs something long and shows meanwhile what it is doing: at a terminal in one line that is overwritten and finally
 * removed, elsewhere in a line each.
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
