import assert from "node:assert/strict";
import { remainingGraceMs, withdrawalSeconds } from "./grace.ts";

const nowSeconds = 1_767_225_600;
const nowMs = nowSeconds * 1000;
const dayMs = 86_400_000;

function remaining(withdrawnAtSeconds: number | undefined, upMs = dayMs, graceMs = 10_000): number {
  const record = { withdrawnAtSeconds };
  return remainingGraceMs({ record, nowMs, graceMs, upMs, doubtful: false, confirmedAgeMs: Infinity });
}

Deno.test("remainingGraceMs() counts from the last withdrawal", () => {
  assert.equal(remaining(undefined), 0);
  assert.equal(remaining(nowSeconds), 10_000);
  assert.equal(remaining(nowSeconds - 4), 6_000);
  assert.equal(remaining(nowSeconds - 10), 0);
  assert.equal(remaining(nowSeconds - 1000), 0);
  assert.equal(remaining(nowSeconds, dayMs, 0), 0);
});

Deno.test("remainingGraceMs() believes a time that is ahead by no more than a withdrawal's own margin", () => {
  assert.equal(remaining(withdrawalSeconds(nowMs)), 11_000);
});

Deno.test("remainingGraceMs() waits the whole grace after a time in the future or one that cannot be read", () => {
  assert.equal(remaining(nowSeconds + 60), 10_000);
  assert.equal(remaining(Number.MAX_SAFE_INTEGER), 10_000);
  assert.equal(remaining(nowSeconds + 60, 1_000), 10_000, "not even a reboot can be placed after it");
});

Deno.test("remainingGraceMs() waits the whole grace when the export may have gone off later than recorded", () => {
  const doubtful = {
    record: { withdrawnAtSeconds: nowSeconds - 60 },
    nowMs,
    graceMs: 10_000,
    doubtful: true,
    confirmedAgeMs: Infinity,
  };
  assert.equal(remainingGraceMs({ ...doubtful, upMs: dayMs }), 10_000);
  assert.equal(remainingGraceMs({ ...doubtful, upMs: 5_000 }), 0, "a reboot ends what lingers");
});

Deno.test("remainingGraceMs() is over when the router has rebooted since, and only when that is sure", () => {
  assert.equal(remaining(nowSeconds - 9, 5_000), 0);
  assert.equal(remaining(nowSeconds - 9, 8_000), 1_000, "the boot was before, or at most a second after");
  assert.equal(remaining(nowSeconds - 9, 60_000), 1_000);
});

Deno.test("remainingGraceMs() goes by what this process has seen when the clock was set since", () => {
  const later = {
    record: { withdrawnAtSeconds: nowSeconds - 3_600 },
    nowMs,
    graceMs: 10_000,
    doubtful: false,
  };
  assert.equal(remainingGraceMs({ ...later, upMs: dayMs, confirmedAgeMs: 4_000 }), 6_000);
  assert.equal(remainingGraceMs({ ...later, upMs: dayMs, confirmedAgeMs: 10_000 }), 0);
  assert.equal(
    remainingGraceMs({ ...later, upMs: 1_000, confirmedAgeMs: 2_000 }),
    8_000,
    "it may have booted before",
  );
  assert.equal(
    remainingGraceMs({ ...later, upMs: 1_000, confirmedAgeMs: 3_001 }),
    0,
    "a reboot ends what lingers",
  );
});

Deno.test("withdrawalSeconds() is never before the command that it is written for", () => {
  for (const ms of [nowMs, nowMs + 1, nowMs + 999]) {
    assert.ok(withdrawalSeconds(ms) * 1000 - ms >= 1_000);
    assert.ok(withdrawalSeconds(ms) * 1000 - ms <= 2_000);
  }
});
