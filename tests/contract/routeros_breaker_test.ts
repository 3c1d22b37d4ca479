// How the RouterOS adapter treats a router that cannot be reached for a while: calls fail at once with the reason, none
// pile up, and the adapter notices when the router is back.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { systemClock } from "../../src/host/clock.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { addOne, contractTest, filePrefix, slot, truth } from "./_routeros_bench.ts";
import { rejectsWith } from "../fakes/volume_errors.ts";

const nextTry = /in a row|failed once/;

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedMs = systemClock.monotonicMs();
  await run();
  return systemClock.monotonicMs() - startedMs;
}

contractTest(
  "a router that is down is UNAVAILABLE at once after three attempts, and used again once up",
  async (bench) => {
    const { store, call, router, cost } = bench;
    await addOne(bench);
    await control(bench.router, "POST /reboot", { downMs: 2500 });
    await rejectsWith(
      store.view(slot, filePrefix, call()),
      "unavailable",
      /3 times in a row, and the next try is not before/,
    );
    cost();
    const ms = await timed(() =>
      Promise.all(
        Array.from(
          { length: 500 },
          (_, i) => rejectsWith(store.view(`pvc-${i}`, filePrefix, call()), "unavailable", nextTry),
        ),
      )
    );
    assert.ok(ms < 1000, `${ms} ms for 500 refusals`);
    assert.equal(cost().execs, 0);
    for (let attempt = 0;; attempt++) {
      try {
        const { volume } = await store.view(slot, filePrefix, call());
        assert.deepEqual(volume, truth(router, slot));
        break;
      } catch (error) {
        if (!VolumeError.is(error, "unavailable") || attempt > 200) throw error;
        await systemClock.sleep(50);
      }
    }
    assert.equal(cost().execs, 1);
  },
);

contractTest(
  "a change whose end is unknown is still settled by reading, through an open breaker",
  async (bench) => {
    const { store, call, router } = bench;
    await addOne(bench);
    const { comment } = truth(router, slot)!;
    router.faults.arm({ match: "/disk set", nth: 1, times: 1, action: "hang", value: "after" });
    const changing = store.change(slot, comment, { comment: "changed" }, call(15_000));
    await systemClock.sleep(50);
    await control(bench.router, "POST /reboot", { downMs: 2000 });
    await systemClock.sleep(1200);
    await rejectsWith(store.view("pvc-other", filePrefix, call()), "unavailable", nextTry);
    assert.deepEqual((await changing).after.volume, truth(router, slot));
    assert.equal(truth(router, slot)?.comment, "changed");
  },
);
