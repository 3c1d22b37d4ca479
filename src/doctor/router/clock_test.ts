import assert from "node:assert/strict";
import { type JsonObject, Row } from "../../routeros/console/json.ts";
import { judgeClock, parseClock } from "./clock.ts";

const noon = Date.UTC(2026, 10, 21, 12, 0, 0);

const readable: readonly (readonly [JsonObject, number])[] = [
  [{ date: "2026-11-21", time: "12:00:00", "gmt-offset": "+00:00" }, noon],
  [{ date: "nov/21/2026", time: "12:00:00", "gmt-offset": "+00:00" }, noon],
  [{ date: "2026-11-21", time: "14:00:00", "gmt-offset": "+02:00" }, noon],
  [{ date: "2026-11-21", time: "06:30:00", "gmt-offset": "-05:30" }, noon],
  [{ date: "2026-11-21", time: "14:00:00", "gmt-offset": 7200n }, noon],
  [{ date: "2026-11-21", time: "07:00:00", "gmt-offset": 4294949296n }, noon],
  [{ date: "2026-11-22", time: "01:00:00", "gmt-offset": "46800" }, noon],
];

for (const [row, ms] of readable) {
  Deno.test(`parseClock() reads ${row["date"]} ${row["time"]} ${row["gmt-offset"]}`, () => {
    assert.equal(parseClock(new Row(row, "clock")), ms);
  });
}

const unreadable: readonly JsonObject[] = [
  {},
  { date: "2026-11-21", time: "12:00:00" },
  { date: "yesterday", time: "12:00:00", "gmt-offset": "+00:00" },
  { date: "foo/21/2026", time: "12:00:00", "gmt-offset": "+00:00" },
  { date: "2026-11-21", time: "noon", "gmt-offset": "+00:00" },
];

for (const row of unreadable) {
  Deno.test(`parseClock() gives nothing for ${JSON.stringify(row)}`, () => {
    assert.equal(parseClock(new Row(row, "clock")), undefined);
  });
}

const differences: readonly (readonly [thereMs: number | undefined, state: string, words: RegExp])[] = [
  [noon, "ok", /0 s apart/],
  [noon + 30_000, "ok", /30 s apart/],
  [noon - 31_000, "warning", /31 s behind/],
  [noon + 3_600_000, "warning", /3600 s ahead/],
  [undefined, "warning", /unknown form/],
];

for (const [thereMs, state, words] of differences) {
  Deno.test(`judgeClock() finds ${thereMs === undefined ? "no time" : `${thereMs - noon} ms`} to be: ${state}`, () => {
    const finding = judgeClock(thereMs, noon);
    assert.equal(finding.state, state);
    assert.match(finding.found, words);
    assert.equal(finding.fix === undefined, state === "ok");
  });
}
