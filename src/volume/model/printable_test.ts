import assert from "node:assert/strict";
import { printable } from "./printable.ts";

Deno.test("printable() escapes C0, C1 and bidirectional controls, and no other character", () => {
  const codes = [...range(0x00, 0x1f), ...range(0x7f, 0x9f), 0x61c, 0x200e, 0x200f]
    .concat(range(0x202a, 0x202e), range(0x2066, 0x2069)).filter((code) => code !== 0x09 && code !== 0x0a);
  const changed = range(0, 0xffff).filter((code) => printable(String.fromCharCode(code)).length !== 1);
  assert.deepEqual(changed, codes);
  assert.equal(printable("a\x1b[2J\x9bm\u202eb\tü\n🙂"), "a\\u001b[2J\\u009bm\\u202eb\tü\n🙂");
});

Deno.test("printable() keeps the meaning of JSON", () => {
  const value = { "a\u202e": "\x00\x1b]0;\x07\x7f\x85\u2066\u2028\\u001b" };
  for (const indent of [undefined, 2]) {
    assert.deepEqual(JSON.parse(printable(JSON.stringify(value, undefined, indent))), value);
  }
});

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}
