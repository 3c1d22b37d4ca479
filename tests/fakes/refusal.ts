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
