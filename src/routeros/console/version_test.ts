import assert from "node:assert/strict";
import { isAtLeast, parseRouterInfo } from "./version.ts";
import { parseRow } from "./json.ts";

for (
  const [version, supported, supportsSubvolumes, supportsNqn] of [
    ["7.24 (stable)", true, true, true],
    ["7.21beta3 (testing)", true, true, true],
    ["7.20.8 (long-term)", true, true, false],
    ["7.18", true, true, false],
    ["7.17.2 (stable)", true, false, false],
    ["7.9.2 (stable)", false, false, false],
    ["6.49.10", false, false, false],
    ["8.0", true, true, true],
    ["unknown", false, false, false],
  ] as const
) {
  Deno.test(`parseRouterInfo() knows what ${version} can do`, () => {
    const info = parseRouterInfo(parseRow(JSON.stringify({ version, "board-name": "RDS2216" }), "x"));
    assert.deepEqual(info, { version, board: "RDS2216", supported, supportsSubvolumes, supportsNqn });
  });
}

Deno.test("isAtLeast() compares numbers, not text", () => {
  assert.equal(isAtLeast("7.9", 7, 17), false);
  assert.equal(isAtLeast("10.0", 7, 17), true);
});
