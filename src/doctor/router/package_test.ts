import assert from "node:assert/strict";
import { parseRows } from "../../routeros/console/json.ts";
import { judgePackages } from "./package.ts";

const cases:
  readonly (readonly [what: string, rows: readonly unknown[], state: string, fix: RegExp | undefined])[] = [
    ["installed", [{ name: "rose-storage", version: "7.24", disabled: false }], "ok", undefined],
    ["installed, without a word about being disabled", [{ name: "rose-storage" }], "ok", undefined],
    [
      "disabled",
      [{ name: "rose-storage", disabled: "yes" }],
      "problem",
      /\/system\/package\/enable rose-storage/,
    ],
    ["missing", [{ name: "routeros", disabled: false }], "problem", /\/system\/reboot/],
  ];

for (const [what, rows, state, fix] of cases) {
  Deno.test(`judgePackages() finds a package that is ${what} to be: ${state}`, () => {
    const finding = judgePackages(parseRows(JSON.stringify(rows), "packages"));
    assert.equal(finding.state, state);
    if (fix === undefined) assert.equal(finding.fix, undefined);
    else assert.match(finding.fix ?? "", fix);
  });
}
