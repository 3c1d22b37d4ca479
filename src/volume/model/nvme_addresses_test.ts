import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { maxNvmeAddresses, parseNvmeAddresses } from "./parameters.ts";

const eight = Array.from({ length: maxNvmeAddresses }, (_, i) => `10.0.0.${i + 1}`);

for (const text of ["10.0.0.1", "::1", "fd00::", "router.example.com", "10.0.0.1,fd00::2,b", eight.join()]) {
  Deno.test(`parseNvmeAddresses() reads ${text}`, () => {
    assert.deepEqual(parseNvmeAddresses("k", text), text.split(","));
  });
}

const wrong = [
  "",
  ",",
  "a,",
  ",a",
  "a,,b",
  "a, b",
  "a,a",
  "-a",
  "a-",
  ".",
  "a b",
  "a;b",
  "a/b",
  "a\n",
  "[::1]",
];
for (const text of [...wrong, `${eight.join()},b`, "x".repeat(256)]) {
  Deno.test(`parseNvmeAddresses() throws invalid for ${JSON.stringify(text)}`, () => {
    assert.throws(() => parseNvmeAddresses("nvmeAddress", text), refusal("invalid", /: nvmeAddress="/));
  });
}
