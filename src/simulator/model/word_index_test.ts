import assert from "node:assert/strict";
import { wholeWords, WordIndex } from "./word_index.ts";

const cases: readonly (readonly [pattern: string, words: readonly string[]])[] = [
  ["pvc-0a1b[.]0c2d", ["0a1b"]],
  ["/pvc-0a1b[.]0c2d[.]img", ["pvc", "0a1b", "0c2d"]],
  ["(^|/)metal-csi/x", ["metal", "csi"]],
  ["^ab$", ["ab"]],
  ["/snap-", ["snap"]],
  ["abc", []],
  ["-a.b-", []],
  ["", []],
  ["-ab*-", []],
  ["-ab?-cd-", []],
  ["-[a-f]-ab-", []],
  ["-(a|b)-ab-", []],
  ["a|-bc-", []],
  ["-ab{2}-", []],
  ["\\d-ab-", []],
];

for (const [pattern, words] of cases) {
  Deno.test(`wholeWords() finds ${words.length === 0 ? "none" : words.join(", ")} in ${JSON.stringify(pattern)}`, () => {
    assert.deepEqual(wholeWords(pattern), words);
  });
}

Deno.test("WordIndex.among() leaves out no text that the pattern matches, and finds one of many", () => {
  const texts = [
    "a/pvc-01.aa.img",
    "a/pvc-02.aa.img",
    "a/pvc-01.bb.img",
    "pvc-01",
    "01",
    "x-pvc-01-",
    "apvc-01",
  ];
  const index = new WordIndex<number>();
  texts.forEach((text, key) => index.add(key, text));
  for (
    const pattern of ["pvc-01[.]", "/pvc-02[.]aa[.]img", "-01$", "^pvc-01", "(^|/)pvc-01", "nothing-at-all"]
  ) {
    const among = [...index.among(pattern) ?? texts.keys()];
    const matching = texts.flatMap((text, key) => new RegExp(pattern).test(text) ? [key] : []);
    assert.deepEqual(matching.filter((key) => !among.includes(key)), [], pattern);
  }
  assert.deepEqual([...index.among("/pvc-02[.]aa[.]img")!], [1]);
  assert.equal(index.among("vc-0"), undefined);
});

Deno.test("WordIndex forgets what was removed", () => {
  const index = new WordIndex<number>();
  index.add(1, "a-b-c");
  index.add(2, "a-b-d");
  index.remove(1, "a-b-c");
  assert.deepEqual([...index.among("-b-")!], [2]);
  assert.deepEqual([...index.among("-c$")!], []);
});
