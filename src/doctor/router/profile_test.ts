import assert from "node:assert/strict";
import { judgeProfile } from "./profile.ts";

const cases: readonly (readonly [Parameters<typeof judgeProfile>[0], readonly RegExp[]])[] = [
  [{}, []],
  [{ limits: "enough", sideEffects: "harmless" }, []],
  [{ limits: "too-small" }, [
    /limits are too small for slots of 32 .* 255 bytes, NQNs of 90.*no controller starts/,
  ]],
  [{ sideEffects: "ends-sessions" }, [/ends the sessions of hosts to others: no volume is created/]],
];

for (const [answers, problems] of cases) {
  Deno.test(`judgeProfile() finds ${problems.length} problems in ${JSON.stringify(answers)}`, () => {
    const findings = judgeProfile(answers, 90);
    assert.equal(findings.length, Math.max(1, problems.length));
    for (const [index, { check, state, found, fix }] of findings.entries()) {
      assert.equal(check, "profile");
      assert.equal(state, problems.length > 0 ? "problem" : "ok");
      assert.match(found, problems[index] ?? /can work/);
      assert.equal(fix !== undefined, problems.length > 0);
    }
  });
}
