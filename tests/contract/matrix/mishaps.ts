// Lives of volumes, snapshots and copies on routers that lose, cut, delay or refuse answers.
import assert from "node:assert/strict";
import type { FaultAction } from "../../../src/simulator/faults.ts";
import {
  type Bench,
  filePrefixOf,
  held,
  record,
  slot,
  type StepPlan,
  steps,
  truth,
} from "../_routeros_bench.ts";
import {
  copySteps,
  filesHolding,
  hasSubvolume,
  innerPlace,
  restored,
  subvolumeSteps,
} from "../_routeros_images.ts";
import { noCopies } from "./copies.ts";
import type { Scenario } from "./scenario.ts";
import { assertUntouched, on, shortHeld, useless } from "./store.ts";
import { refusesAdoption, withoutSubvolumes } from "./subvolumes.ts";

type Mishap = readonly [action: FaultAction, value?: string | number];

/** A life: steps that follow each other on one router. */
type Life = Readonly<Record<string, StepPlan>>;

const plainLife: Life = {
  add: steps.add,
  change: steps.change,
  unchange: {
    ...steps.change,
    run: async ({ store }, call) => {
      const { after, refusal } = await store.change(slot, held, { comment: record, export: false }, call);
      return { shown: after.volume, refusal };
    },
    isDone: (router) => truth(router, slot)?.exported === false && truth(router, slot)?.comment === record,
  },
  remove: steps.remove,
};
const unexportedLife: Life = { add: steps.add, remove: steps.remove };

const removeRestored: StepPlan = {
  ...subvolumeSteps["remove a subvolume"]!,
  run: async ({ store }, call) => {
    const [location, filePrefix] = [innerPlace(restored), filePrefixOf(restored)];
    const view = await store.view(restored, filePrefix, call);
    const { after, refusal } = view.volume === undefined
      ? await store.removeImage(location, filePrefix, call)
      : await store.remove(view.volume, location, filePrefix, call);
    return { shown: after.files, refusal };
  },
  truth: (router) => filesHolding(router, filePrefixOf(restored)),
  isDone: (router) =>
    truth(router, restored) === undefined && !hasSubvolume(router, innerPlace(restored).subvolume.path),
};
const unrestoredLife: Life = {
  "add in a subvolume": subvolumeSteps["add in a subvolume"]!,
  snapshot: subvolumeSteps["snapshot"]!,
  "remove a snapshot": subvolumeSteps["remove a snapshot"]!,
  "remove a subvolume": subvolumeSteps["remove a subvolume"]!,
};
const subvolumeLife: Life = {
  "add in a subvolume": subvolumeSteps["add in a subvolume"]!,
  snapshot: subvolumeSteps["snapshot"]!,
  "restore a snapshot": subvolumeSteps["restore a snapshot"]!,
  "remove what was restored": removeRestored,
  "remove a snapshot": subvolumeSteps["remove a snapshot"]!,
  "remove a subvolume": subvolumeSteps["remove a subvolume"]!,
};
const copyLife: Life = {
  add: steps.add,
  "copy and rename": copySteps["copy and rename"]!,
  "remove a copy": copySteps["remove a copy"]!,
  remove: steps.remove,
};

/**
 * Goes through a life with a mishap at each step: the driver notices it, and trying again succeeds. A step that is done
 * succeeds once more, and changes nothing.
 */
async function survive(bench: Bench, mishaps: readonly Mishap[], life: Life): Promise<void> {
  const { router, call } = bench;
  for (const [number, [action, value]] of mishaps.entries()) {
    for (const [step, plan] of Object.entries(life)) {
      // A removal needs an earlier look.
      await bench.store.view(slot, filePrefixOf(slot), call());
      router.faults.arm({ match: plan.match, nth: 1, times: 1, action, value });
      const { shown, refusal } = await plan.run(bench, call());
      assert.deepEqual(shown, plan.truth(router), `${step} under ${action} ${value}`);
      if (action === "error") assert.notEqual(refusal, undefined, step);
      for (let tries = 0; tries < 3 && !plan.isDone(router); tries++) await plan.run(bench, call());
      assert.ok(plan.isDone(router), `${step} under ${action} ${value}`);
      router.faults.clear();
      if (number > 0) continue;
      const { shown: again } = await plan.run(bench, call());
      assert.deepEqual([again, plan.isDone(router)], [plan.truth(router), true], `${step}, which is done`);
    }
  }
  assertUntouched(bench);
}

const columns: Readonly<Record<string, readonly Mishap[]>> = {
  "lost answers": [["drop-before"], ["drop-after"], ["close-no-status"]],
  "cut answers": [["truncate", 0], ["truncate", 8], ["truncate", 40], ["truncate", 300]],
  "no answer": [["hang"], ["hang", "after"]],
  "noise": [["noise"], ["noise", "failure: not really"], ["noise", "[]"]],
  "refusals": [["error", "purple elephants"], ["error", "OK"], ["error", "[]"]],
};

/** On routers that cannot do one of the steps, the other steps must work all the same. */
function living(name: string, mishaps: readonly Mishap[]): readonly Scenario[] {
  // Each command to a silent router waits for its timeout.
  const options = mishaps.some(([action]) => action === "hang") ? { commandTimeoutMs: 300 } : {};
  const through = (life: Life) => on((bench) => survive(bench, mishaps, life), options);
  return [
    {
      name,
      run: through(plainLife),
      otherwise: [
        ...useless,
        {
          ...shortHeld,
          because: "a holder finds no room, so there are two steps only",
          run: through(unexportedLife),
        },
      ],
    },
    {
      name: `${name}, subvolumes`,
      run: through(subvolumeLife),
      otherwise: [
        ...withoutSubvolumes,
        {
          when: refusesAdoption,
          because: "a router that takes over no file restores nothing, so there are four steps only",
          run: through(unrestoredLife),
        },
      ],
    },
    { name: `${name}, copies`, run: through(copyLife), otherwise: [...useless, noCopies] },
  ];
}

export const mishapScenarios: readonly Scenario[] = Object.entries(columns).flatMap(([name, mishaps]) =>
  living(name, mishaps)
);
