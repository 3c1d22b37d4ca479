import assert from "node:assert/strict";
import { ago, duration, longDuration, markup, moment } from "./html.ts";
import { counted } from "../../volume/model/counted.ts";

Deno.test("markup escapes every value, and inserts nested markup unchanged", () => {
  const name = `<b onclick="x()">&'`;
  assert.equal(
    String(markup`<p title="${name}">${name}${markup`<i>${1}</i>`}${undefined}${["a<", markup`<br>`]}</p>`),
    `<p title="&lt;b onclick=&quot;x()&quot;&gt;&amp;&#39;">&lt;b onclick=&quot;x()&quot;&gt;&amp;&#39;<i>1</i>a&lt;<br></p>`,
  );
});

Deno.test("markup shows characters that reverse text, or are invisible", () => {
  assert.equal(String(markup`${"a\u202eb\u0000c\u2066d\u001b[31m"}`), "a\ufffdb\ufffdc\ufffdd\ufffd[31m");
  assert.equal(String(markup`${"ä € 漢\n"}`), "ä € 漢\n");
});

for (
  const [ms, text] of [
    [undefined, "–"],
    [0, "0 ms"],
    [6.93, "6.9 ms"],
    [9.97, "10 ms"],
    [999.4, "999 ms"],
    [999.6, "1 s"],
    [1234, "1.2 s"],
    [59_949, "59.9 s"],
    [61_000, "1 min"],
  ] as const
) Deno.test(`duration(${ms}) is ${text}`, () => assert.equal(duration(ms), text));

for (
  const [ms, text] of [
    [-5, "0 s"],
    [59_400, "59 s"],
    [3_599_000, "59 min"],
    [47 * 3_600_000, "47 h"],
    [100 * 3_600_000, "4 d"],
  ] as const
) Deno.test(`longDuration(${ms}) is ${text}`, () => assert.equal(longDuration(ms), text));

Deno.test("ago() and moment() accept times outside the calendar", () => {
  assert.equal(String(ago(undefined, 0)), "never");
  assert.equal(String(ago(0, 5000)), '<time title="1970-01-01 00:00:00 UTC">5 s ago</time>');
  assert.equal(moment(Number.MAX_SAFE_INTEGER * 1000), "–");
  assert.equal(counted(1, "volume"), "1 volume");
  assert.equal(counted(5000, "volume"), "5,000 volumes");
});
