import assert from "node:assert/strict";
import { VolumeError } from "../volume/errors.ts";
import { StatusError } from "./command_status.ts";
import { explainRefusal, isRefusedCommand, type Refusal, refusalOf } from "./refusal.ts";

function refused(type: number, code: number, result = 0n): VolumeError {
  const cause = new StatusError({ type, code, doNotRetry: true }, result);
  return new VolumeError("unavailable", "Cannot connect", { cause });
}

/** The result of a Connect whose wrong parameter is the NQN of the subsystem, in its data. */
const subsystemNqn = 1n << 16n | 256n;

const cases: readonly (readonly [what: string, error: VolumeError, refusal: Refusal])[] = [
  ["a name that it does not have", refused(1, 0x82, subsystemNqn), "no-subsystem"],
  ["another parameter in the data", refused(1, 0x82, subsystemNqn + 256n), "other"],
  ["a parameter outside the data", refused(1, 0x82, 256n), "other"],
  ["another reason with the same result", refused(1, 0x80, subsystemNqn), "other"],
  ["the same code of another type", refused(0, 0x82, subsystemNqn), "other"],
  ["this host", refused(1, 0x84), "host"],
  ["one controller more", refused(1, 0x81), "busy"],
];

for (const [what, error, refusal] of cases) {
  Deno.test(`refusalOf() returns ${refusal} when the target refuses ${what}`, () => {
    const explained = explainRefusal(error, "nqn.volume", "nqn.host");
    assert.equal(refusalOf(explained), refusal);
    assert.ok(VolumeError.is(explained, "unavailable"));
    assert.match(explained.message, /nqn=nqn\.volume hostnqn=nqn\.host/);
  });
}

Deno.test("explainRefusal() returns an error of another cause unchanged", () => {
  for (const error of [new Error("no route"), new VolumeError("unavailable", "Cannot connect")]) {
    assert.equal(explainRefusal(error, "nqn.volume", "nqn.host"), error);
    assert.equal(refusalOf(error), undefined);
  }
});

Deno.test("isRefusedCommand() is true for a refusal that another path would get too", () => {
  assert.deepEqual([refused(0, 0x02), refused(3, 0x60), new Error("gone")].map(isRefusedCommand), [
    true,
    false,
    false,
  ]);
});
