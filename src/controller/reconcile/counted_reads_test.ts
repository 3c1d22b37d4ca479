import assert from "node:assert/strict";
import { testSettings } from "../../../tests/fakes/controller_deps.ts";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import type { Clock } from "../../volume/ports/system.ts";
import { CountedReads } from "./counted_reads.ts";

const reading = { pools: [], upMs: testSettings.settleMs, volumes: [aDisk(aRecord())] };

/** A clock by which the counts so far have taken so long. */
function slowed(clock: FakeClock, takenMs: () => number): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.now() + takenMs(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    timer: (ms, callback) => clock.timer(ms, callback),
  };
}

Deno.test("CountedReads counts a read once it was answered, and none at a router that may still bring disks back", async () => {
  const clock = new FakeClock();
  let counted = 0;
  const reads = new CountedReads({
    clock,
    settings: testSettings,
    events: { occurred: () => counted++ },
  });
  reads.seen({ ...reading, upMs: testSettings.settleMs - 1 });
  assert.equal(clock.waiting, 0);
  reads.seen(reading);
  reads.seen(reading);
  assert.equal(counted, 0);
  await clock.advance(100);
  assert.equal(counted, 1);
  reads.seen(reading);
  await clock.advance(100);
  assert.equal(counted, 2);
});

Deno.test("CountedReads spends at most a tenth of the time, and counts the last look with its own time", async () => {
  const clock = new FakeClock();
  const counted: number[] = [];
  const seenAt: number[] = [];
  const reads = new CountedReads({
    clock: slowed(clock, () => 50 * counted.length),
    settings: testSettings,
    events: {
      occurred: (event) => {
        assert(event.kind === "inventory-read");
        counted.push(event.totals.folders.at(0)?.volumes ?? 0);
        seenAt.push(event.atMs);
      },
    },
  });
  for (let ms = 0; ms < 10_000; ms += 10) {
    reads.seen(reading);
    await clock.advance(10);
  }
  const countingMs = 50 * counted.length;
  const share = countingMs / (10_000 + countingMs);
  assert.ok(share > 0.08 && share < 0.11, String(share));
  reads.seen(reading);
  reads.seen({ ...reading, volumes: [] });
  const lastMs = clock.now();
  await clock.advance(1000);
  assert.deepEqual([counted.at(-2), counted.at(-1), seenAt.at(-1)], [1, 0, lastMs]);
});

Deno.test("CountedReads counts nothing more once it is closed", async () => {
  const clock = new FakeClock();
  let counted = 0;
  const reads = new CountedReads({
    clock: slowed(clock, () => 50 * counted),
    settings: testSettings,
    events: { occurred: () => counted++ },
  });
  reads.seen(reading);
  await clock.advance(1000);
  reads.seen(reading);
  reads.close();
  reads.seen(reading);
  await clock.advance(1000);
  assert.equal(counted, 1);
  assert.equal(clock.waiting, 0);
});
