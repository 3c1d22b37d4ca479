import assert from "node:assert/strict";
import { circles } from "./verify_circles.ts";

const CASES: readonly [what: string, imports: Record<string, readonly string[]>, expected: string[][]][] = [
  ["none in a chain", { a: ["b"], b: ["c"], c: [] }, []],
  ["none where two import the same", { a: ["b", "c"], b: ["d"], c: ["d"], d: [] }, []],
  ["two that import each other", { a: ["b"], b: ["a"] }, [["a", "b"]]],
  ["one over others, without those that only lead to it", {
    z: ["a"],
    a: ["b"],
    b: ["c"],
    c: ["a", "d"],
    d: [],
  }, [
    ["a", "b", "c"],
  ]],
  ["two circles, each by itself", { a: ["b"], b: ["a", "c"], c: ["d"], d: ["c"] }, [["a", "b"], ["c", "d"]]],
  ["two circles that share a module as one", { a: ["b", "c"], b: ["a"], c: ["a"] }, [["a", "b", "c"]]],
];

for (const [what, imports, expected] of CASES) {
  Deno.test(`circles() finds ${what}`, () => {
    const found = circles(new Map(Object.entries(imports))).map((group) => group.toSorted());
    assert.deepEqual(found.toSorted(), expected);
  });
}
