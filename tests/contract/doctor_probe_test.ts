// `rds-csi doctor --probe` finds out how a router behaves: every behaviour of the simulated router is set to every
// value, one at a time, and the printed profile has exactly the answers that belong to it.
import assert from "node:assert/strict";
import { defaultRouterBehaviours, type RouterBehaviours } from "../../src/router_profile/answers.ts";
import type { Behaviours } from "../../src/simulator/behaviours.ts";
import { withDirectBench } from "./_probe_bench.ts";

type Question = keyof RouterBehaviours;

/** One behaviour of a router, and what differs in the profile of such a router; undefined is no answer. */
type Case = readonly [behaviours: Partial<Behaviours>, differs: { readonly [Name in Question]?: unknown }];

const small = { limits: "too-small" } as const;
const cases: Readonly<Record<string, readonly Case[]>> = {
  maxSlot: [[{ maxSlot: 31 }, small], [{ maxSlot: 32 }, {}], [{ maxSlot: Infinity }, {}]],
  maxComment: [[{ maxComment: 200 }, small], [{ maxComment: 254 }, small], [{ maxComment: 255 }, {}]],
  maxNqn: [[{ maxNqn: 75 }, small], [{ maxNqn: 76 }, {}]],
  maxPut: [[{ maxPut: 2047 }, small], [{ maxPut: 4096 }, {}]],
  maxCommand: [[{ maxCommand: 1023 }, small], [{ maxCommand: 1024 }, {}]],
  grow: [
    [{ grow: "live" }, { grow: "live" }],
    [{ grow: "after-toggle" }, {}],
    [{ grow: "never" }, { grow: undefined }],
  ],
  identity: [[{ identity: "kept" }, {}], [{ identity: "new-per-export" }, {}]],
  bootIdentity: [[{ bootIdentity: "kept" }, {}]],
  sideEffects: [
    // The export that stays on while another one is withdrawn loses its session, too.
    [{ sideEffects: "ends-sessions" }, { sideEffects: "ends-sessions", unexport: undefined }],
  ],
  unexport: [
    [{ unexport: 5000 }, { unexport: 5000 }],
    [{ unexport: 30_000 }, { unexport: 30_000 }],
    [{ unexport: "refuses-commands" }, { unexport: "refuses-commands" }],
  ],
  copyReturns: [
    [{ copyReturns: "at-once" }, { copyReturns: "at-once" }],
    [{ copyReturns: "at-once", allocation: "full" }, { copyReturns: "at-once" }],
    // Here every copy takes the same time, so that it tells nothing.
    [{ allocation: "full" }, { copyReturns: undefined }],
  ],
  subvolumeNames: [[{ subvolumeNames: "flat" }, { subvolumeNames: "flat" }]],
  others: [
    [{}, {}],
    [{ adopt: "refused" }, { copyReturns: undefined }],
    [{ subvolumeParent: "held" }, {}],
    [{ output: "hostile" }, {}],
    [{ disksLate: 60_000 }, {}],
  ],
};

for (const [name, all] of Object.entries(cases)) {
  Deno.test(`the probe finds what a router does whose ${name} differs, and leaves nothing`, async () => {
    const results = await Promise.allSettled(all.map((one) => assertFound(...one)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  });
}

async function assertFound(behaviours: Case[0], differs: Case[1]): Promise<void> {
  const text = JSON.stringify(behaviours);
  await withDirectBench({ behaviours: { maxSlot: 32, ...behaviours } }, async ({ router, probe, state }) => {
    // A copy that takes no time is complete with the answer, whenever the router answers.
    router.model.delays.copyMs = 2000;
    const before = state();
    const { profile, unanswered } = await probe();
    await router.model.clock.sleep(30_000);
    assert.deepEqual(state(), before, `${text}: nothing is left`);
    assert.deepEqual(router.violations.list(), [], text);
    // Only a reboot shows it.
    const expected = { ...defaultRouterBehaviours, bootIdentity: undefined, ...differs };
    for (const [name, value] of Object.entries(expected)) {
      const answer = profile.answers[name as Question];
      const said = `${text}: ${name} is ${answer}, ${unanswered[name]}`;
      if (name === "unexport" && Number(value) > 0) {
        // Measured: never below the true value, and only a little above.
        const late = Number(answer) - Number(value);
        assert.ok(late >= 0 && late < 200, said);
      } else assert.equal(answer, value, said);
      assert.notEqual(answer === undefined, unanswered[name] === undefined, said);
      if (answer === undefined) assert.ok(unanswered[name]!.length > 20, said);
    }
  });
}
