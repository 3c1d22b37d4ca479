import assert from "node:assert/strict";
import { isRetried, VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import { GRPC_CODES, type GrpcCodeName, isFault, wireStatus } from "./grpc_status.ts";

const EXPECTED: Record<VolumeErrorKind, string> = {
  "invalid": "INVALID_ARGUMENT",
  "not-found": "NOT_FOUND",
  "exists-incompatible": "ALREADY_EXISTS",
  "in-use": "FAILED_PRECONDITION",
  "published-elsewhere": "FAILED_PRECONDITION",
  "node-unknown": "NOT_FOUND",
  "exhausted": "RESOURCE_EXHAUSTED",
  "out-of-range": "OUT_OF_RANGE",
  "busy": "ABORTED",
  "unavailable": "UNAVAILABLE",
  "identity-mismatch": "FAILED_PRECONDITION",
  "precondition": "FAILED_PRECONDITION",
  "unsupported": "INVALID_ARGUMENT",
  "unimplemented": "UNIMPLEMENTED",
  "deadline": "DEADLINE_EXCEEDED",
  "cancelled": "CANCELLED",
  "unauthenticated": "UNAUTHENTICATED",
  "bad-token": "ABORTED",
  "internal": "INTERNAL",
};

for (const [kind, name] of Object.entries(EXPECTED)) {
  Deno.test(`wireStatus() maps ${kind} to ${name} and keeps its message`, () => {
    const error = new VolumeError(kind as VolumeErrorKind, `Cannot do it: kind=${kind}`, {
      cause: new Error("s3cret"),
    });
    const wire = wireStatus(error, "r1");
    assert.equal(wire.code, name);
    assert.equal(wire.details, `Cannot do it: kind=${kind}`);
  });
}

Deno.test("isRetried() is true of the kinds whose codes a kubelet repeats, and of no other", () => {
  const repeated = ["CANCELLED", "DEADLINE_EXCEEDED", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED"];
  for (const [kind, name] of Object.entries(EXPECTED)) {
    const error = new VolumeError(kind as VolumeErrorKind, "Cannot do it");
    assert.equal(isRetried(error), repeated.includes(name), kind);
  }
  assert.equal(isRetried(new Error("s3cret")), false);
});

Deno.test("wireStatus() reveals only the request id of an unexpected error", () => {
  for (
    const error of [new Error("s3cret"), new TypeError("s3cret"), "s3cret", { s3cret: 1 }, undefined, null]
  ) {
    const wire = wireStatus(error, "ab12cd34");
    assert.equal(wire.code, "INTERNAL");
    assert.match(wire.details, /request=ab12cd34/);
    assert.doesNotMatch(wire.details, /s3cret|status_test/);
  }
});

Deno.test("wireStatus() returns details that can always be percent-encoded and are not endless", () => {
  for (
    const message of [
      "half \ud800 pair",
      "nul \0",
      "\x9b".repeat(2048),
      "x".repeat(2047) + "\u{1f600}",
      "x".repeat(1e6),
    ]
  ) {
    const { details } = wireStatus(new VolumeError("invalid", message), "r1");
    assert.doesNotThrow(() => encodeURI(details));
    assert.ok(details.length <= 2049 && !details.includes("\0") && !details.includes("\x9b"));
  }
});

Deno.test("isFault() is true for INTERNAL and UNKNOWN only", () => {
  const faults = Object.keys(GRPC_CODES).filter((code) => isFault(code as GrpcCodeName));
  assert.deepEqual(faults, ["UNKNOWN", "INTERNAL"]);
});
