import assert from "node:assert/strict";
import { remainingGraceMs, withdrawalSeconds } from "./grace.ts";

const nowMs = 1_767_225_600_000;

function remaining(ageMs: number, graceMs = 10_000, withdrawnAtSeconds?: number): number {
  const record = { withdrawnAtSeconds: withdrawnAtSeconds ?? nowMs / 1000 };
  return remainingGraceMs({ record, graceMs, ageMs });
}

Deno.test("remainingGraceMs() counts from when this process first saw the export off", () => {
  assert.equal(remaining(0), 10_000);
  assert.equal(remaining(4_000), 6_000);
  assert.equal(remaining(10_000), 0);
  assert.equal(remaining(1_000_000), 0);
  assert.equal(remaining(0, 0), 0);
});

Deno.test("remainingGraceMs() is 0 where nothing was withdrawn", () => {
  const never = { record: { withdrawnAtSeconds: undefined }, graceMs: 10_000, ageMs: 0 };
  assert.equal(remainingGraceMs(never), 0);
});

Deno.test("remainingGraceMs() ignores the time in the record", () => {
  for (const seconds of [0, nowMs / 1000 - 3_600, nowMs / 1000 + 3_600, Number.MAX_SAFE_INTEGER]) {
    assert.equal(remaining(0, 10_000, seconds), 10_000, String(seconds));
    assert.equal(remaining(9_000, 10_000, seconds), 1_000, String(seconds));
  }
});

Deno.test("withdrawalSeconds() is never before the command for which it is written", () => {
  for (const ms of [nowMs, nowMs + 1, nowMs + 999]) {
    assert.ok(withdrawalSeconds(ms) * 1000 - ms >= 1_000);
    assert.ok(withdrawalSeconds(ms) * 1000 - ms <= 2_000);
  }
});
