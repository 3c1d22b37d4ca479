import assert from "node:assert/strict";
import { Row } from "../../routeros/console/json.ts";
import { parseRouterInfo } from "../../routeros/console/router_info.ts";
import { judgeVersion } from "./version.ts";

const cases: readonly (readonly [version: string, state: string, words: RegExp])[] = [
  ["7.24 (stable)", "ok", /^7\.24 \(stable\) on RDS2216$/],
  ["7.23", "ok", /7\.23/],
  ["7.22.1", "warning", /no \/file copy/],
  ["7.20.8 (long-term)", "problem", /no NQN of its own.*publishing is refused; no \/file copy/],
  ["7.17", "problem", /no NQN.*no Btrfs subvolumes.*no \/file copy/],
  ["7.16.2", "problem", /too old/],
  ["6.49", "problem", /too old/],
];

for (const [version, state, words] of cases) {
  Deno.test(`judgeVersion() finds RouterOS ${version} to be: ${state}`, () => {
    const info = parseRouterInfo(new Row({ version, "board-name": "RDS2216" }, "resource"));
    const finding = judgeVersion(info, false);
    assert.equal(finding.state, state);
    assert.match(finding.found, words);
    assert.equal(finding.fix, state === "ok" ? undefined : "/system/package/update/install");
  });
}

Deno.test("judgeVersion() only warns of an old RouterOS where publishing without a fence is allowed", () => {
  const info = parseRouterInfo(new Row({ version: "7.20" }, "resource"));
  const finding = judgeVersion(info, true);
  assert.equal(finding.state, "warning");
  assert.match(finding.found, /allowed by --allow-unfenced/);
});
