import { BtrfsError } from "../host/btrfs.ts";
import { Refusal } from "../refusal.ts";

const ENOSPC = 28;

/**
 * Does something on a real file system.
 *
 * @throws {Refusal} when that is full.
 */
export function withSpace<Result>(act: () => Result): Result {
  try {
    return act();
  } catch (error) {
    throw isNoSpace(error) ? Refusal.noSpace() : error;
  }
}

function isNoSpace(error: unknown): boolean {
  if (error instanceof BtrfsError) return error.errno === ENOSPC;
  return error instanceof Error && error.message.includes(`(os error ${ENOSPC})`);
}
