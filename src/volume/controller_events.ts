/** What happens in a controller and is worth counting. No method throws, waits, or changes what is done. */
export interface ControllerEvents {
  /** A node left a volume that goes on being exported for others, and the router could not be told to shut it out. */
  leaverUnfenced(): void;
}

/** Counts nothing. */
export const uncountedByController: ControllerEvents = { leaverUnfenced() {} };
