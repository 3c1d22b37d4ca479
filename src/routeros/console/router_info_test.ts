import assert from "node:assert/strict";
import { throwsWith } from "../../../tests/fakes/volume_errors.ts";
import { parseRow } from "./json.ts";
import {
  assertStoragePackage,
  assertSupported,
  isAtLeast,
  parseResource,
  parseRouterInfo,
  parseUptime,
} from "./router_info.ts";

for (
  const [version, supported] of [
    ["7.24 (stable)", true],
    ["7.21beta3 (testing)", true],
    ["7.20.8 (long-term)", false],
    ["7.9.2 (stable)", false],
    ["6.49.10", false],
    ["8.0", true],
    ["unknown", false],
  ] as const
) {
  Deno.test(`the driver ${supported ? "works" : "does not work"} with RouterOS ${version}`, () => {
    const info = parseRouterInfo(parseRow(JSON.stringify({ version, "board-name": "RDS2216" }), "x"));
    const { sshExploited: _, ...can } = info;
    assert.deepEqual(can, { version, board: "RDS2216", supported });
    if (supported) assertSupported(info);
    else throwsWith(() => assertSupported(info), "precondition", /too old.* needed=7\.21; upgrade it/);
  });
}

for (
  const [version, sshExploited] of [
    ["7.23.4 (long-term)", false],
    ["7.23.10", false],
    ["7.24.2 (stable)", false],
    ["7.24.10", false],
    ["7.25beta1 (testing)", false],
    ["7.26beta1", false],
    ["8.0", false],
    ["7.23.3 (stable)", true],
    ["7.23", true],
    ["7.23.4rc1 (testing)", true],
    ["7.24 (stable)", true],
    ["7.24.1 (stable)", true],
    ["7.24rc4 (testing)", true],
    ["7.24beta2", true],
    ["7.24.2rc1", true],
    ["7.22.9", true],
    ["7.9.4", true],
    ["6.49.20", true],
    ["unknown", true],
  ] as const
) {
  Deno.test(`RouterOS ${version} ${sshExploited ? "can" : "cannot"} be taken over through SSH`, () => {
    const info = parseRouterInfo(parseRow(JSON.stringify({ version }), "x"));
    assert.equal(info.sshExploited, sshExploited);
  });
}

Deno.test("isAtLeast() compares numbers, not text", () => {
  assert.equal(isAtLeast("7.9", 7, 17), false);
  assert.equal(isAtLeast("10.0", 7, 17), true);
});

const second = 1000, minute = 60 * second, hour = 60 * minute, day = 24 * hour;

for (
  const [text, ms] of [
    ["00:01:02", minute + 2 * second],
    ["23:59:59", day - second],
    ["3d04:05:06", 3 * day + 4 * hour + 5 * minute + 6 * second],
    ["2w1d03:04:05", 15 * day + 3 * hour + 4 * minute + 5 * second],
    ["1y2w00:00:01", 379 * day + second],
    ["1y", 365 * day],
    ["2w", 14 * day],
    ["00:00:05.120", 5 * second],
    ["1w2d3h4m5s", 9 * day + 3 * hour + 4 * minute + 5 * second],
    ["10s", 10 * second],
    ["5m30s", 5 * minute + 30 * second],
    ["2h", 2 * hour],
    ["7s120ms", 7 * second],
  ] as const
) {
  Deno.test(`parseUptime() reads ${text}`, () => assert.equal(parseUptime(text), ms));
}

for (const text of ["", "never", "1", "12:34", "-1d", "1d2w", "2x", "1d 00:00:00", "00:00:00x", "1.5d"]) {
  Deno.test(`parseUptime() does not guess at ${JSON.stringify(text)}`, () => {
    assert.equal(parseUptime(text), undefined);
  });
}

Deno.test("parseResource() reads the uptime", () => {
  assert.equal(parseResource(`{"uptime":"2w1d03:04:05","version":"7.24 (stable)"}`).upMs, 1307045000);
});

Deno.test("parseResource() throws unavailable when the uptime is missing or unreadable", () => {
  throwsWith(() => parseResource(`{"version":"7.24"}`), "unavailable", /uptime/);
  throwsWith(() => parseResource(`{"uptime":"soon"}`), "unavailable", /soon/);
  throwsWith(() => parseResource(`{"uptime":5}`), "unavailable", /uptime/);
});

const storage = { name: "rose-storage" };

for (
  const [name, packages, form] of [
    ["no rose-storage", [{ name: "routeros" }], /rose-storage.*install/],
    ["a disabled rose-storage", [{ ...storage, disabled: "yes" }], /disabled.*enable/],
    ["nothing to find fault with", [{ ...storage, disabled: false }], undefined],
  ] as const
) {
  Deno.test(`assertStoragePackage() says what to do about ${name}`, () => {
    const info = parseRouterInfo(parseRow(JSON.stringify({ version: "7.24" }), "x"));
    const check = () => assertStoragePackage(info, JSON.stringify(packages));
    if (form === undefined) check();
    else throwsWith(check, "precondition", form);
  });
}
