// Assertions about failures: their kind and their message.
import assert from "node:assert/strict";
import { VolumeError, type VolumeErrorKind } from "../../src/volume/errors.ts";

/** Fails unless the promise is rejected with a `VolumeError` of that kind whose message has that form. */
export async function rejectsWith(
  promise: Promise<unknown>,
  kind: VolumeErrorKind,
  form = /./,
): Promise<void> {
  await assert.rejects(promise, (error) => isWith(error, kind, form));
}

/** Fails unless the action throws a `VolumeError` of that kind whose message has that form. */
export function throwsWith(action: () => unknown, kind: VolumeErrorKind, form = /./): void {
  assert.throws(action, (error) => isWith(error, kind, form));
}

function isWith(error: unknown, kind: VolumeErrorKind, form: RegExp): true {
  assert.ok(VolumeError.is(error, kind) && form.test(error.message), String(error));
  return true;
}
