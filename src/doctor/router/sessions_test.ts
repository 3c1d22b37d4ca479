import assert from "node:assert/strict";
import { parseRows } from "../../routeros/console/json.ts";
import { judgeSessions } from "./sessions.ts";

const cases: readonly (readonly [rows: readonly unknown[], state: string, words: RegExp])[] = [
  [[{ name: "ssh", "max-sessions": 20 }], "ok", /20 at a time/],
  [[{ name: "ssh", "max-sessions": "4" }], "ok", /4 at a time/],
  [[{ name: "ssh", "max-sessions": 3 }], "warning", /too few/],
  [[{ name: "ssh" }], "ok", /no limit/],
  [[], "ok", /no limit/],
];

for (const [rows, state, words] of cases) {
  Deno.test(`judgeSessions() finds ${JSON.stringify(rows)} to be: ${state}`, () => {
    const finding = judgeSessions(parseRows(JSON.stringify(rows), "services"));
    assert.equal(finding.state, state);
    assert.match(finding.found, words);
    assert.equal(finding.fix !== undefined, state !== "ok");
  });
}
