import assert from "node:assert/strict";
import { judgePolicy } from "./policy.ts";

const cases: readonly (readonly [refusal: string | undefined, state: string])[] = [
  [undefined, "ok"],
  ['"no such item"', "ok"],
  ['"expected item id (line 1 column 11)"', "ok"],
  ['"not enough permissions (9)"', "problem"],
  ['"amber kettle"', "warning"],
];

for (const [refusal, state] of cases) {
  Deno.test(`judgePolicy() takes ${refusal ?? "silence"} for: ${state}`, () => {
    const finding = judgePolicy(refusal, "rds-csi");
    assert.equal(finding.state, state);
    if (state === "problem") assert.match(finding.fix!, /policy=ssh,read,write.*name="rds-csi"/);
  });
}
