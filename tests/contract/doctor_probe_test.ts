// `rds-csi doctor --probe` finds out how a router behaves: every behaviour of the simulated router is set to every
// value, one at a time, and the printed profile has exactly that value.
import assert from "node:assert/strict";
import { defaultRouterBehaviours, type RouterBehaviours } from "../../src/router_profile/answers.ts";
import { withDirectBench } from "./_probe_bench.ts";

type Behaviour = keyof RouterBehaviours;

/** Every behaviour, with the values that the tests set. */
const values: { readonly [Name in Behaviour]: readonly RouterBehaviours[Name][] } = {
  maxSlot: [24, 31, 32, 33, 34, 40, 63, Infinity],
  maxComment: [64, 200, 255, 256, 1000, 4000, Infinity],
  maxNqn: [100, 223, 224, 256, Infinity],
  maxPut: [1024, 4096, 16_384, Infinity],
  maxCommand: [1024, 2048, 4096, 8192, 16_384, Infinity],
  textMatch: ["exact", "ignore-case"],
  grow: ["live", "after-toggle", "never"],
  bootIdentity: ["kept", "new"],
  liveChange: ["harmless", "ends-sessions"],
  otherDisks: ["harmless", "ends-sessions"],
  withdrawal: ["ends-sessions", "refuses-commands"],
  unexport: [0, 5000, 30_000],
  discard: ["frees", "keeps", "unsupported"],
  disksLate: [0, 60_000],
  allocation: ["sparse", "full"],
  adopt: ["kept", "refused"],
  copy: ["reflink", "full"],
  copyReturns: ["when-done", "at-once"],
  subvolumeNames: ["nested", "flat"],
  subvolumeParent: ["free", "held"],
};

/** The values of the newest router. */
const defaults: Partial<RouterBehaviours> = { maxSlot: 32 };

/** Values that the probe cannot find: something that never happens, and what only a reboot shows. */
const beyondReach: Readonly<Partial<Record<Behaviour, readonly unknown[]>>> = {
  disksLate: values.disksLate,
  bootIdentity: values.bootIdentity,
};

/** Behaviours that also change the answer to another question, as they would on a real router. */
const sideEffects: Readonly<Record<string, Partial<RouterBehaviours>>> = {
  // What takes its full size at once does so as a copy; the simulator then knows no holes.
  "allocation=full": { copy: "full", discard: "keeps" },
};

/** The probe measures this time: the result is never below the true value, and only a little above. */
const tolerances: Readonly<Partial<Record<Behaviour, number>>> = { unexport: 200 };

for (const [name, all] of Object.entries(values) as [Behaviour, readonly RouterBehaviours[Behaviour][]][]) {
  Deno.test(`the probe finds ${name} to be ${all.join(", ")}, and leaves nothing`, async () => {
    const results = await Promise.allSettled(all.map((value) => assertFound(name, value)));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  });
}

async function assertFound(name: Behaviour, value: RouterBehaviours[Behaviour]): Promise<void> {
  await withDirectBench({ behaviours: { ...defaults, [name]: value } }, async ({ router, probe, state }) => {
    const text = `${name}=${value}`;
    // A copy that takes no time is complete with the answer, whenever the router answers.
    router.model.delays.copyMs = 2000;
    const before = state();
    const { profile, unanswered } = await probe();
    if (name === "unexport") await router.model.clock.sleep(Number(value));
    assert.deepEqual(state(), before, `${text}: nothing is left`);
    assert.deepEqual(router.violations.list(), [], text);
    if (beyondReach[name]?.includes(value)) {
      assert.equal(profile.answers[name], undefined, text);
      assert.ok((unanswered[name] ?? "").length > 20, `${text}: there is a reason`);
    } else assertAnswer(name, profile.answers[name], value, text);
    const expected: RouterBehaviours = {
      ...defaultRouterBehaviours,
      ...defaults,
      [name]: value,
      ...sideEffects[text],
    };
    for (const other of Object.keys(values) as Behaviour[]) {
      const answer = profile.answers[other];
      assert.notEqual(answer === undefined, unanswered[other] === undefined, `${text}: ${other} is either`);
      if (answer !== undefined) assertAnswer(other, answer, expected[other], text);
    }
  });
}

function assertAnswer(name: Behaviour, answer: unknown, expected: unknown, text: string): void {
  const tolerance = tolerances[name];
  if (tolerance === undefined || expected === 0) return assert.equal(answer, expected, `${text}: ${name}`);
  const late = Number(answer) - Number(expected);
  assert.ok(late >= 0 && late < tolerance, `${text}: ${name} is ${answer}`);
}
