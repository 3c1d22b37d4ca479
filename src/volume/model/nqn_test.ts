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

Deno.test("parseExportNqn() reads the NQN of one of several routers, which always has an epoch", () => {
  const read = (tail: string) => parseExportNqn(`nqn.x:${tail}`, "nqn.x");
  assert.deepEqual(read("nas2:pvc-1:3-0123abcd"), { volumeId: "nas2/pvc-1", epoch: "3-0123abcd" });
  assert.deepEqual(read("nas2:3-0123abcd"), { volumeId: "nas2", epoch: "3-0123abcd" });
  for (
    const tail of [
      "nas2:pvc-1:later",
      "NAS:pvc-1:3-0123abcd",
      "nas2:PVC:3-0123abcd",
      "a:nas2:pvc-1:3-0123abcd",
    ]
  ) {
    assert.equal(read(tail), undefined, tail);
  }
});
