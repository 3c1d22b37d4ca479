import assert from "node:assert/strict";
import { type JsonObject, parseRows, Row } from "../../routeros/console/json.ts";
import { parseRouterInfo } from "../../routeros/console/router_info.ts";
import type { Finding } from "../../volume/model/finding.ts";
import { judgeClock, judgePackages, judgeVersion, parseClock } from "./software.ts";

const noon = Date.UTC(2026, 10, 21, 12, 0, 0);

const readable: readonly (readonly [JsonObject, number | undefined])[] = [
  [{ date: "2026-11-21", time: "12:00:00", "gmt-offset": "+00:00" }, noon],
  [{ date: "nov/21/2026", time: "12:00:00", "gmt-offset": "+00:00" }, undefined],
  [{ date: "2026-11-21", time: "14:00:00", "gmt-offset": "+02:00" }, noon],
  [{ date: "2026-11-21", time: "06:30:00", "gmt-offset": "-05:30" }, noon],
  [{ date: "2026-11-21", time: "14:00:00", "gmt-offset": 7200n }, noon],
  [{ date: "2026-11-21", time: "07:00:00", "gmt-offset": 4294949296n }, noon],
  [{ date: "2026-11-22", time: "01:00:00", "gmt-offset": "46800" }, noon],
  [{}, undefined],
  [{ date: "2026-11-21", time: "12:00:00" }, undefined],
  [{ date: "yesterday", time: "12:00:00", "gmt-offset": "+00:00" }, undefined],
  [{ date: "foo/21/2026", time: "12:00:00", "gmt-offset": "+00:00" }, undefined],
  [{ date: "2026-11-21", time: "noon", "gmt-offset": "+00:00" }, undefined],
];

for (const [row, ms] of readable) {
  const text = `${row["date"]} ${row["time"]} ${row["gmt-offset"]}`;
  Deno.test(`parseClock() gives ${ms === undefined ? "nothing" : "noon"} for ${text}`, () => {
    assert.equal(parseClock(new Row(row, "clock")), ms);
  });
}

function version(text: string): Finding {
  const info = parseRouterInfo(new Row({ version: text, "board-name": "RDS2216" }, "resource"));
  return judgeVersion(info, "rds-csi");
}

const packages = (...rows: readonly unknown[]) => judgePackages(parseRows(JSON.stringify(rows), "packages"));

const upgrade =
  /^upgrade RouterOS to 7\.23\.4, or 7\.24\.2 of 7\.24 or later.*ssh"\] address=NODES; .*"rds-csi"\] address=NODES$/;
const limit724 = /^upgrade RouterOS.*ssh"\] available-from=NODES; /;
const holes = /holes in SSH/;
const old = /too old; the driver needs 7\.21.*no \/file copy.*holes in SSH/;
const cases: readonly (readonly [what: string, Finding, state: string, found: RegExp, fix?: RegExp])[] = [
  ["the same time", judgeClock(noon, noon), "ok", /0 s off/],
  ["30 s more", judgeClock(noon + 30_000, noon), "ok", /30 s off/],
  ["31 s less", judgeClock(noon - 31_000, noon), "warning", /31 s behind/, /ntp/],
  ["an hour more", judgeClock(noon + 3_600_000, noon), "warning", /3600 s ahead/, /ntp/],
  ["no time", judgeClock(undefined, noon), "warning", /unknown form/, /clock/],
  ["7.24.4 (stable)", version("7.24.4 (stable)"), "ok", /^7\.24\.4 \(stable\) on RDS2216$/],
  ["7.24.1 (stable)", version("7.24.1 (stable)"), "problem", holes, limit724],
  ["7.24 (stable)", version("7.24 (stable)"), "problem", holes, limit724],
  ["7.23.4", version("7.23.4"), "ok", /7\.23\.4/],
  ["7.23.3", version("7.23.3"), "problem", holes, upgrade],
  ["7.22.1", version("7.22.1"), "problem", /no \/file copy.*holes in SSH/, upgrade],
  ["7.20.8", version("7.20.8 (long-term)"), "problem", old, upgrade],
  ["6.49", version("6.49"), "problem", old, upgrade],
  [
    "a package",
    packages({ name: "rose-storage", version: "7.24", disabled: false }),
    "ok",
    /rose-storage 7\.24/,
  ],
  ["a package that says little", packages({ name: "rose-storage" }), "ok", /^rose-storage$/],
  [
    "a disabled package",
    packages({ name: "rose-storage", disabled: "yes" }),
    "problem",
    /disabled/,
    /package\/enable rose-storage/,
  ],
  [
    "no package",
    packages({ name: "routeros", disabled: false }),
    "problem",
    /not installed/,
    /package\/apply-changes/,
  ],
];

for (const [what, finding, state, found, fix = /^$/] of cases) {
  Deno.test(`doctor finds software with ${what} to be: ${state}`, () => {
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
    assert.match(finding.fix ?? "", fix);
  });
}
