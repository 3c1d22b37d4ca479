import assert from "node:assert/strict";
import { remainingGraceMs, withdrawalSeconds } from "./grace.ts";

const nowMs = 1_767_225_600_000;
const dayMs = 86_400_000;

function remaining(ageMs: number, upMs = dayMs, graceMs = 10_000, withdrawnAtSeconds?: number): number {
  const record = { withdrawnAtSeconds: withdrawnAtSeconds ?? nowMs / 1000 };
  return remainingGraceMs({ record, graceMs, upMs, ageMs });
}

Deno.test("remainingGraceMs() counts from when this process first saw the export off", () => {
  assert.equal(remaining(0), 10_000);
  assert.equal(remaining(4_000), 6_000);
  assert.equal(remaining(10_000), 0);
  assert.equal(remaining(1_000_000), 0);
  assert.equal(remaining(0, dayMs, 0), 0);
});

Deno.test("remainingGraceMs() is 0 where nothing was withdrawn", () => {
  const never = { record: { withdrawnAtSeconds: undefined }, graceMs: 10_000, upMs: dayMs, ageMs: 0 };
  assert.equal(remainingGraceMs(never), 0);
});

Deno.test("remainingGraceMs() ignores the time in the record", () => {
  for (const seconds of [0, nowMs / 1000 - 3_600, nowMs / 1000 + 3_600, Number.MAX_SAFE_INTEGER]) {
    assert.equal(remaining(0, dayMs, 10_000, seconds), 10_000, String(seconds));
    assert.equal(remaining(9_000, dayMs, 10_000, seconds), 1_000, String(seconds));
  }
});

Deno.test("remainingGraceMs() is over when the router has certainly rebooted since", () => {
  assert.equal(remaining(9_000, 5_000), 0);
  assert.equal(remaining(7_000, 5_000), 3_000, "the boot was before, or at most a second after");
  assert.equal(remaining(9_000, 60_000), 1_000);
  assert.equal(remaining(0, 0), 10_000, "not even a reboot just now can be placed after it");
});

Deno.test("withdrawalSeconds() is never before the command for which it is written", () => {
  for (const ms of [nowMs, nowMs + 1, nowMs + 999]) {
    assert.ok(withdrawalSeconds(ms) * 1000 - ms >= 1_000);
    assert.ok(withdrawalSeconds(ms) * 1000 - ms <= 2_000);
  }
});
