import assert from "node:assert/strict";
import { groupDigits, roundSize, toHuman } from "./human.ts";
import { wrap } from "./detail.ts";

const sizes: readonly (readonly [bytes: bigint, rounded: string])[] = [
  [0n, "0"],
  [512n, "512"],
  [1024n, "1024"],
  [1536n, "1.5KiB"],
  [1048576n, "1024.0KiB"],
  [1073741824n, "1024.0MiB"],
  [1073741825n, "1.0GiB"],
  [2147483648n, "2.0GiB"],
  [53687091200n, "50.0GiB"],
  [107374182400n, "100.0GiB"],
  [1099511627776n, "1024.0GiB"],
  [1649267441664n, "1.5TiB"],
];

for (const [bytes, rounded] of sizes) {
  Deno.test(`roundSize() writes ${bytes} as ${rounded}`, () => {
    assert.equal(roundSize(bytes), rounded);
  });
}

Deno.test("groupDigits() groups from the right", () => {
  const numbers = [0n, 999n, 1000n, 53687091200n, 7681574174720n];
  assert.deepEqual(numbers.map(groupDigits), ["0", "999", "1 000", "53 687 091 200", "7 681 574 174 720"]);
});

const durations: readonly (readonly [value: string, written: string])[] = [
  ["2w1d03:04:05", "2w1d3h4m5s"],
  ["00:00:00", "0s"],
  ["00:01:00", "1m"],
  ["1d00:00:09", "1d9s"],
  ["10:00:00", "10h"],
];

for (const [value, written] of durations) {
  Deno.test(`toHuman() writes the duration ${value} as ${written}`, () => {
    assert.equal(toHuman(value, "duration"), written);
  });
}

Deno.test("wrap() keeps every character but the blanks it breaks at", () => {
  const text = 'comment="a b c" size=1 073 741 824 path=/a/very/long/path/that/fits/no/line end';
  for (let room = 1; room < 90; room++) {
    const lines = wrap(text, room);
    assert.ok(lines.every((line) => line.length <= room));
    assert.equal(lines.join("").replaceAll(" ", ""), text.replaceAll(" ", ""));
  }
});
