import assert from "node:assert/strict";
import { parseExportNqn } from "./nqn.ts";

const prefix = "nqn.2000-02.com.mikrotik";

const cases: readonly (readonly [nqn: string, expected: readonly [string, string] | undefined])[] = [
  [`${prefix}:pvc-1:2-0a0b0c0d`, ["pvc-1", "2-0a0b0c0d"]],
  [`${prefix}:pvc-1`, ["pvc-1", ""]],
  [`${prefix}:pvc-1:2-0a0b0c0d:3`, undefined],
  [`${prefix}:pvc-1:`, undefined],
  [`${prefix}:../x:1`, undefined],
  [`${prefix}:`, undefined],
  [`${prefix}`, undefined],
  [`${prefix}x:pvc-1`, undefined],
  ["nqn.2014-08.org.nvmexpress.discovery", undefined],
];

for (const [nqn, expected] of cases) {
  Deno.test(`parseExportNqn() ${expected === undefined ? "refuses" : "reads"} ${nqn}`, () => {
    const found = parseExportNqn(nqn, prefix);
    assert.deepEqual(found && [found.volumeId, found.epoch], expected);
  });
}
