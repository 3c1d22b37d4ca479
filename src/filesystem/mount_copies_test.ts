import assert from "node:assert/strict";
import { isCopy, parsePropagatedTable } from "./mount_copies.ts";

const own = parsePropagatedTable([
  "1 0 254:0 / / rw shared:1 - ext4 /dev/vda rw",
  "2 1 254:0 /kubelet /data/kubelet rw shared:2 - ext4 /dev/vda rw",
  "3 2 259:1 / /data/kubelet/staging rw shared:3 - ext4 /dev/nvme0n1 rw",
  "4 5 259:2 / /private/staging rw shared:4 - ext4 /dev/nvme0n2 rw",
  "5 1 254:0 /private /private rw - ext4 /dev/vda rw",
].join("\n"));

for (
  const [what, around, line, expected] of [
    ["one that shares", "254:0 /kubelet /kubelet rw shared:2", "259:1 / /kubelet/staging rw shared:3", true],
    ["one that receives", "254:0 / / rw shared:9 master:2", "259:1 / /kubelet/staging rw master:3", true],
    ["another group", "254:0 / / rw shared:9", "259:1 / /kubelet/staging rw shared:3", false],
    ["another place", "254:0 / / rw master:2", "259:1 / /data/kubelet/staging rw master:3", false],
    ["another device", "254:0 / / rw master:2", "259:9 / /kubelet/staging rw master:3", false],
    ["what has no group", "254:0 /private /private rw", "259:2 / /private/staging rw", false],
  ] as const
) {
  Deno.test(`isCopy() of a mount in ${what}: ${expected}`, () => {
    const other = parsePropagatedTable(`7 6 ${around} - ext4 /dev/vda rw\n8 7 ${line} - ext4 /dev/x rw\n`);
    assert.equal(isCopy(own, other, other.entries[1]!), expected);
  });
}

Deno.test("isCopy() of the root of a mount namespace: false", () => {
  const other = parsePropagatedTable("8 7 259:1 / / rw shared:3 - ext4 /dev/nvme0n1 rw");
  assert.equal(isCopy(own, other, other.entries[0]!), false);
});
