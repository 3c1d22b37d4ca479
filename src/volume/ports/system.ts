/** Time, passed in so that a simulation can own it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Monotonic milliseconds, for durations. */
  monotonicMs(): number;
  /**
   * Resolves after `ms` milliseconds; rejects with `signal.reason` as soon as `signal` is aborted.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `callback` once after `ms` milliseconds unless cancelled by the returned function. */
  timer(ms: number, callback: () => void): () => void;
}

/** Randomness, passed in so that a simulation can seed it. */
export interface Random {
  /** Returns `count` random bytes. */
  bytes(count: number): Uint8Array;
  /** Returns a float in [0, 1). */
  fraction(): number;
}

/** What each call passes down to the last command it sends. */
export interface CallContext {
  /** Names this call in every log line. */
  readonly requestId: string;
  /** Aborted when the client cancels or its deadline passes; the reason is a {@linkcode VolumeError}. */
  readonly signal: AbortSignal;
  /**
   * When the deadline of the signal passes, in `Clock.now()` milliseconds; absent without one. Only `timeLeftMs()` reads
   * it, for what is better not begun when it cannot be finished.
   */
  readonly deadlineMs?: number;
  /**
   * Whether nothing depends on the call: of its commands one at a time is sent to a router, their silence is no sign of the
   * router's state, and when one is given up its channel may stay open, because closing the connection would break off the
   * others' commands.
   */
  readonly aside?: true;
}
