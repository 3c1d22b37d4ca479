import assert from "node:assert/strict";
import { VolumeError, type VolumeErrorKind } from "../../src/volume/errors.ts";

/**
 * For `assert.throws()` and `assert.rejects()`: accepts a VolumeError of that kind whose message matches, and otherwise
 * prints the error.
 */
export function refusal(kind: VolumeErrorKind, text: RegExp = /^Cannot /): (error: unknown) => true {
  return (error) => {
    assert.ok(VolumeError.is(error), `expected a VolumeError, got ${error}`);
    assert.equal(error.kind, kind, error.message);
    assert.match(error.message, text);
    return true;
  };
}

/**
 * Like {@linkcode refusal}, for a call that leaves something on the node: it is answered as one to be repeated, and that is
 * why it failed.
 */
export function unsettled(kind: VolumeErrorKind, text?: RegExp): (error: unknown) => true {
  return (error) => {
    refusal("unavailable", text)(error);
    return refusal(kind, text)((error as VolumeError).cause);
  };
}

/** The reason of a failure that left something on the node; any other failure itself. */
export function reasonOf(error: unknown): unknown {
  return VolumeError.is(error, "unavailable") && VolumeError.is(error.cause) &&
      error.cause.message === error.message
    ? error.cause
    : error;
}
