import assert from "node:assert/strict";
import { parseUptime } from "./uptime.ts";

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
