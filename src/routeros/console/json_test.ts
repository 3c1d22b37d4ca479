import assert from "node:assert/strict";
import { throwsWith } from "../../../tests/fakes/volume_errors.ts";
import { eachRow, parseJson, parseRow, parseRows, Row } from "./json.ts";

const unavailable = (action: () => unknown, form: RegExp) => throwsWith(action, "unavailable", form);

Deno.test("parseJson() keeps integers of any size exact", () => {
  assert.deepEqual(parseJson(`[9007199254740993, 18446744073709551615, -1, 0]`, "x"), [
    9007199254740993n,
    18446744073709551615n,
    -1n,
    0n,
  ]);
});

Deno.test("parseJson() leaves fractions and exponents as numbers, so that they do not look exact", () => {
  assert.deepEqual(parseJson(`[2048.000000, 1e3]`, "x"), [2048, 1000]);
  unavailable(() => new Row(parseJson(`{"size":2048.000000}`, "x"), "x").integer("size"), /size/);
});

for (const text of ["", "[", `[{"a":1]`, "no such item", `[{"a":}]`]) {
  Deno.test(`parseJson() throws unavailable for ${JSON.stringify(text)}`, () => {
    unavailable(() => parseJson(text, "list of disks"), /list of disks.*no.? JSON|not JSON/);
  });
}

for (const text of ["{}", "null", "1", `["a"]`, "[[]]", "[null]"]) {
  Deno.test(`parseRows() throws unavailable for ${text}`, () => {
    unavailable(() => parseRows(text, "list of disks"), /list of disks/);
  });
}

/** A list that is long enough to be parsed in pieces, with texts that look like places to divide it. */
function longList(separator: string): string {
  const items = Array.from({ length: 6_000 }, (_, index) => {
    const comment = index % 3 === 0 ? `}, {"slot":"x${index}"},{` : 'a note \\" },{ of somebody';
    const size = index === 5_999 ? "9007199254740993" : String(index);
    return `{"slot":"s${index}","comment":${
      JSON.stringify(comment)
    },"parts":[{"a":1},{"a":2}],"size":${size}}`;
  });
  return `[${items.join(separator)}]`;
}

for (const separator of [",", ", ", " ,\n"]) {
  Deno.test(`eachRow() reads a long list with ${JSON.stringify(separator)} between its items as one`, () => {
    const text = longList(separator);
    assert.ok(text.length > 500_000);
    const wanted = JSON.parse(text) as { slot: string; comment: string }[];
    const rows = [...eachRow(text, "x")];
    assert.deepEqual(
      rows.map((row) => [row.text("slot"), row.text("comment")]),
      wanted.map(({ slot, comment }) => [slot, comment]),
    );
    assert.equal(rows.at(-1)!.integer("size"), 9007199254740993n);
  });
}

Deno.test("eachRow() throws unavailable for a long list that is broken anywhere", () => {
  const text = longList(",");
  const all = (broken: string) => () => [...eachRow(broken, "list of disks")];
  unavailable(all(text.slice(0, -1)), /list of disks.*not JSON/);
  unavailable(all(text.slice(0, text.length / 2)), /list of disks.*not JSON/);
  unavailable(all(text.replace('{"slot":"s3000"', '{"slot":s3000')), /list of disks.*not JSON/);
  unavailable(all(text.replace('{"slot":"s5998"', '[],{"slot":"s5998"')), /an item of it is no object/);
  unavailable(all(`{"a":${text}}`), /list of disks.*no list/);
});

Deno.test("eachRow() refuses a long list that is not one of objects, before it is parsed as a whole", () => {
  const all = (text: string) => () => [...eachRow(text, "list of disks")];
  for (const item of ["0,", "[],", '"",', " "]) {
    unavailable(all(`[${item.repeat(1_000_000)}0]`), /list of disks.*an item of it is too long/);
  }
});

Deno.test("parseRow() reads an object, also in a list of one", () => {
  assert.equal(parseRow(`{"uptime":"1d"}`, "x").text("uptime"), "1d");
  assert.equal(parseRow(`[{"uptime":"1d"}]`, "x").text("uptime"), "1d");
});

for (const text of ["[]", `[{"a":"1"},{"a":"2"}]`, `"x"`]) {
  Deno.test(`parseRow() throws unavailable for ${text}`, () => {
    unavailable(() => parseRow(text, "system resource"), /system resource/);
  });
}

function row(fields: string): Row {
  return parseRow(fields, "list of disks");
}

Deno.test("Row.integer() reads numbers and digits alike", () => {
  assert.equal(row(`{"size":7681574174720}`).integer("size"), 7681574174720n);
  assert.equal(row(`{"size":"9007199254740993"}`).integer("size"), 9007199254740993n);
});

for (const value of [`"50.0GiB"`, `"1 073"`, `""`, "-1", `"-1"`, "1.5", "true", "null", "[]", `"0x10"`]) {
  Deno.test(`Row.integer() throws unavailable for ${value}, naming the key and the item`, () => {
    unavailable(() => row(`{"slot":"s1","size":${value}}`).integer("size"), /size.*"s1"/);
    assert.equal(row(`{"size":${value}}`).hasInteger("size"), false);
  });
}

for (
  const [value, flag] of [["true", true], ["false", false], [`"yes"`, true], [`"no"`, false], [
    `"true"`,
    true,
  ], [`"false"`, false]] as const
) {
  Deno.test(`Row.flag() reads ${value}`, () => {
    assert.equal(row(`{"mounted":${value}}`).flag("mounted"), flag);
  });
}

for (const value of [`"maybe"`, "1", `""`, "[]"]) {
  Deno.test(`Row.flag() throws unavailable for ${value}`, () => {
    unavailable(() => row(`{"mounted":${value}}`).flag("mounted", false), /mounted/);
  });
}

Deno.test("Row throws unavailable for a missing key, and returns the fallback if there is one", () => {
  unavailable(() => row("{}").text("slot"), /key slot is missing/);
  unavailable(() => row("{}").flag("mounted"), /key mounted is missing/);
  unavailable(() => row("{}").integer("size"), /key size is missing/);
  assert.equal(row("{}").text("comment", ""), "");
  assert.equal(row("{}").flag("mounted", false), false);
  assert.equal(row("{}").integer("port", 0n), 0n);
});

Deno.test("Row.text() throws unavailable for anything but a string", () => {
  unavailable(() => row(`{"slot":5}`).text("slot"), /slot/);
  unavailable(() => row(`{"slot":["a"]}`).text("slot"), /slot/);
});

Deno.test("Row does not mistake inherited names for keys", () => {
  assert.equal(row("{}").has("constructor"), false);
  unavailable(() => row("{}").text("toString"), /missing/);
});

Deno.test("Row.texts() reads a list in every form, and returns none for a missing key", () => {
  for (
    const [json, wording] of [
      [`{"hosts":"a,b"}`, ["a", "b"]],
      [`{"hosts":["a"," b"]}`, ["a", "b"]],
      [`{"hosts":""}`, []],
      [`{}`, []],
    ] as const
  ) {
    assert.deepEqual(row(json).texts("hosts"), wording, json);
  }
  for (const json of [`{"hosts":5}`, `{"hosts":true}`, `{"hosts":["a",1]}`]) {
    unavailable(() => row(json).texts("hosts"), /hosts/);
  }
});
