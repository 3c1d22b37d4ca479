import assert from "node:assert/strict";
import { pageOf, parseStatusQuery } from "./model.ts";

const parse = (text: string) => parseStatusQuery(new URLSearchParams(text));

for (
  const [text, query] of [
    ["", { text: "", page: 1, perPage: 100 }],
    ["q=+node-1+&page=3&limit=20", { text: "node-1", page: 3, perPage: 20 }],
    ["page=0&limit=-1", { text: "", page: 1, perPage: 100 }],
    ["page=1e9&limit=999999", { text: "", page: 1, perPage: 1000 }],
    ["page=1.5&limit=abc&x=y", { text: "", page: 1, perPage: 100 }],
  ] as const
) Deno.test(`parseStatusQuery() reads ${JSON.stringify(text)}`, () => assert.deepEqual(parse(text), query));

Deno.test("parseStatusQuery() cuts a long text", () => {
  assert.equal(parse(`q=${"a".repeat(1000)}`).text.length, 128);
});

const names = Array.from({ length: 250 }, (_, i) => `pvc-${i}`);
const wording = (name: string) => [name];

Deno.test("pageOf() returns the requested part, and the last one when there are fewer", () => {
  const second = pageOf(names, parse("page=2"), wording);
  assert.deepEqual([second.items[0], second.items.length, second.pages], ["pvc-100", 100, 3]);
  const last = pageOf(names, parse("page=99"), wording);
  assert.deepEqual([last.items[0], last.items.length, last.page], ["pvc-200", 50, 3]);
  assert.deepEqual(pageOf([], parse("page=2"), wording), {
    items: [],
    matching: 0,
    total: 0,
    page: 1,
    pages: 1,
  });
});

Deno.test("pageOf() searches for a text in any case", () => {
  const { items, matching, total } = pageOf(names, parse("q=VC-24"), wording);
  assert.deepEqual([items.length, matching, total], [11, 11, 250]);
});
