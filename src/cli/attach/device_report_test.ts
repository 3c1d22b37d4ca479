import assert from "node:assert/strict";
import { mountCommand } from "./device_report.ts";

const cases: readonly (readonly [type: string | undefined, text: RegExp | undefined])[] = [
  [
    "ext4",
    /^mkdir -p \/mnt\/a && mount -t ext4 -o ro,noload,errors=remount-ro,nosuid,nodev \/dev\/x \/mnt\/a$/,
  ],
  ["ext3", / -o ro,noload,/],
  ["xfs", / -o ro,norecovery,nouuid,/],
  ["btrfs", / -o ro,rescue=nologreplay,/],
  ["crypto_LUKS", /^cryptsetup open --readonly \/dev\/x /],
  ["swap", undefined],
  ["constructor", undefined],
  [undefined, undefined],
];

for (const [type, text] of cases) {
  Deno.test(`mountCommand() ${text === undefined ? "returns none" : "never replays a log"} for ${type}`, () => {
    const command = mountCommand("/dev/x", type, "/mnt/a");
    if (text === undefined) assert.equal(command, undefined);
    else assert.match(command ?? "", text);
  });
}
