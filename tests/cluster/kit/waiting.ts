/** How {@linkcode until} waits. */
export interface Waiting {
  readonly limitSeconds: number;
  /** @default {200} */
  readonly everyMs?: number;
  readonly signal?: AbortSignal;
  /** Returns the present state, for the error. */
  readonly state?: () => Promise<string>;
}

/** Waits for so many milliseconds. */
export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * Calls repeatedly until the result is neither undefined nor false, and returns it.
 *
 * @param what the condition, as it is read after "in vain for"
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  { limitSeconds, everyMs = 200, signal, state }: Waiting,
): Promise<T> {
  const started = performance.now();
  for (;;) {
    signal?.throwIfAborted();
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() - started > limitSeconds * 1000) {
      const now = state === undefined ? "" : `; now: ${await state()}`;
      throw new Error(`waited ${limitSeconds} s in vain for ${what}${now}`);
    }
    await pause(everyMs);
  }
}

/** Seconds since `started`, a `performance.now()`, for people. */
export function secondsSince(started: number): string {
  return ((performance.now() - started) / 1000).toFixed(1);
}
