// How the RouterOS adapter treats commands that fail halfway, on the simulator's real SSH server: it never takes a
// command for done that is not, and a retry succeeds.
import assert from "node:assert/strict";
import { systemClock } from "../../src/host/clock.ts";
import type { FaultAction } from "../../src/simulator/faults.ts";
import { rejectsWith } from "../fakes/volume_errors.ts";
import { addOne, contractTest, filePrefix, slot, type StepPlan, steps, truth } from "./_routeros_bench.ts";
import { copySteps, subvolumeSteps } from "./_routeros_images.ts";

const faults: readonly (readonly [FaultAction, (string | number)?])[] = [
  ["drop-before"],
  ["drop-after"],
  ["close-no-status"],
  ["truncate", 0],
  ["truncate", 8],
  ["truncate", 40],
  ["truncate", 300],
  ["noise"],
  ["noise", "failure: not really"],
  ["delay", 50],
  ["delay", 1000],
  ["hang"],
  ["hang", "after"],
  ["refuse-channel"],
  ["error", "purple elephants"],
];

const plans: Readonly<Record<string, StepPlan>> = { ...steps, ...subvolumeSteps, ...copySteps };

for (const [name, plan] of Object.entries(plans)) {
  for (const [action, value] of faults) {
    const label = value === undefined ? action : `${action} ${value}`;
    contractTest(`${name}() under ${label} shows what is there, and a retry gets there`, async (bench) => {
      const { router, call } = bench;
      await plan.prepare(bench);
      router.faults.arm({ match: plan.match, nth: 1, times: 1, action, value });
      const first = await plan.run(bench, call());
      if (action !== "delay") assert.deepEqual(first.shown, plan.truth(router));
      if (action === "error") assert.match(first.refusal ?? "", /purple elephants/);
      if (action === "noise") assert.ok(plan.isDone(router));
      for (let attempt = 0; attempt < 3 && !plan.isDone(router); attempt++) await plan.run(bench, call());
      assert.ok(plan.isDone(router));
      assert.deepEqual((await bench.store.view(slot, filePrefix, call())).volume, truth(router, slot));
    });
  }

  contractTest(`${name}() under a hang that outlasts its call ends with the deadline`, async (bench) => {
    await plan.prepare(bench);
    bench.router.faults.arm({ match: "", nth: 1, times: 99, action: "hang", value: undefined });
    const started = systemClock.monotonicMs();
    await rejectsWith(plan.run(bench, bench.call(700)), "deadline");
    assert.ok(systemClock.monotonicMs() - started < 2000);
    bench.router.faults.clear();
    for (let attempt = 0; attempt < 3 && !plan.isDone(bench.router); attempt++) {
      await plan.run(bench, bench.call());
    }
    assert.ok(plan.isDone(bench.router));
  });

  contractTest(`${name}() waits for a channel when none is free`, async (bench) => {
    await plan.prepare(bench);
    bench.router.faults.arm({ match: "^", nth: 1, times: 2, action: "refuse-channel", value: undefined });
    await plan.run(bench, bench.call());
    assert.ok(plan.isDone(bench.router));
  });
}

for (const [action, value] of faults.filter(([action]) => action !== "error" && action !== "delay")) {
  contractTest(`view() under ${action} ${value ?? ""} is repeated until complete`, async (bench) => {
    await addOne(bench);
    bench.router.faults.arm({ match: "/disk print", nth: 1, times: 2, action, value });
    const view = await bench.store.view(slot, filePrefix, bench.call());
    assert.deepEqual(view.volume, truth(bench.router, slot));
  });
}
