import assert from "node:assert/strict";
import { judgeReach, type ReachFacts } from "./reach.ts";

const facts: ReachFacts = {
  address: "router",
  port: 22,
  addresses: ["10.0.0.1"],
  reach: { state: "open", ms: 2.5 },
};

const cases: readonly (readonly [string, Partial<ReachFacts>, string, found: RegExp, fix: RegExp])[] = [
  ["a router that answers", {}, "ok", /^router \(10\.0\.0\.1\) port 22 answers in 3 ms$/, /^$/],
  [
    "a name without address",
    { addresses: "not found", reach: undefined },
    "problem",
    /not found/,
    /--rds-address/,
  ],
  ["a refusal", { reach: { state: "refused", reason: "no" } }, "problem", /refuses/, /\/ip\/service\/set/],
  ["silence", { reach: { state: "silent", reason: "no" } }, "problem", /does not answer/, /firewall/],
  [
    "no route",
    { reach: { state: "failed", reason: "EHOSTUNREACH" } },
    "problem",
    /EHOSTUNREACH/,
    /--rds-address/,
  ],
];

for (const [what, own, state, found, fix] of cases) {
  Deno.test(`judgeReach() finds ${what} to be: ${state}`, () => {
    const finding = judgeReach({ ...facts, ...own });
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
    assert.match(finding.fix ?? "", fix);
  });
}
