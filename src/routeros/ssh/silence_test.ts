import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { SilenceWatch } from "./silence.ts";

function watched() {
  const clock = new FakeClock();
  const silences: number[] = [];
  const startedMs = clock.monotonicMs();
  const watch = new SilenceWatch(clock, 20_000, () => silences.push(clock.monotonicMs() - startedMs));
  return { clock, watch, silences };
}

Deno.test("SilenceWatch reports commands that run without an answer, repeatedly", async () => {
  const { clock, watch, silences } = watched();
  watch.sent();
  await clock.advance(15_000);
  watch.sent();
  await clock.advance(45_000);
  assert.deepEqual(silences, [20_000, 40_000, 60_000]);
  watch.gaveUp();
  watch.answered(true);
  assert.equal(clock.waiting, 0);
});

Deno.test("SilenceWatch adds up the waits of abandoned commands, without the time between commands", async () => {
  const { clock, watch, silences } = watched();
  for (let i = 0; i < 3; i++) {
    watch.sent();
    await clock.advance(6_000);
    watch.gaveUp();
    assert.equal(clock.waiting, 0);
    await clock.advance(100_000);
  }
  assert.deepEqual(silences, []);
  watch.sent();
  await clock.advance(2_000);
  assert.deepEqual(silences, [3 * 106_000 + 2_000]);
});

Deno.test("SilenceWatch starts again with every answer, also one of a command that does not count", async () => {
  const { clock, watch, silences } = watched();
  watch.sent();
  await clock.advance(19_000);
  watch.answered(false);
  await clock.advance(19_000);
  watch.sent();
  watch.answered(true);
  await clock.advance(19_000);
  assert.deepEqual(silences, []);
  await clock.advance(1_000);
  assert.deepEqual(silences, [58_000]);
});
