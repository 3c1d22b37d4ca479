import assert from "node:assert/strict";
import type { Fragment } from "../../routeros/console/command.ts";
import { readGround, refuseGround } from "./ground.ts";
import type { ProbeSession } from "./session.ts";

const basePath = "/pool/try";
const own = { ids: [], cluster: "0123abcd" };
const pool = { slot: "raid1", fs: "btrfs", mounted: true, "mount-point": "pool", state: "clean" };
const healthy = { ...pool, size: 1n << 40n, free: 1n << 39n };

/** Why a router with these disks is refused; undefined when it is not. */
async function refusedWith(...disks: object[]): Promise<string | undefined> {
  const read = ({ text }: Fragment) => {
    const resource = {
      "version": "7.24.2 (stable)",
      "board-name": "RDS2216",
      "uptime": "1d00:00:00",
      "architecture-name": "arm64",
    };
    const rows = text.includes("resource")
      ? [resource]
      : text.includes("type!=")
      ? disks
      : text.includes("name=")
      ? [{ name: basePath, type: "directory" }]
      : [];
    const frame = JSON.stringify(rows, (_key, value) => typeof value === "bigint" ? Number(value) : value);
    return Promise.resolve(frame);
  };
  const ground = await readGround({ read } as unknown as ProbeSession, basePath);
  return refuseGround(ground, basePath, own, { acceptVulnerable: true });
}

Deno.test("refuseGround() takes a pool beside a disk whose row cannot be read", async () => {
  const stick = { slot: "usb1", mounted: true, "mount-point": "usb1", size: "931.5GiB", free: 5 };
  assert.equal(await refusedWith(stick, healthy), undefined);
});

Deno.test("refuseGround() names the row of its pool that cannot be read", async () => {
  const refusal = await refusedWith({ ...pool, size: "7.0TiB", free: 5 });
  assert.match(refusal ?? "", /row of its pool cannot be read: .*the key size .*\(of "raid1"\)/);
});

Deno.test("refuseGround() takes an array whose state cannot be read for unsound", async () => {
  const refusal = await refusedWith(healthy, { slot: "raid1-m0", "raid-master": "raid1", state: 7 });
  assert.match(refusal ?? "", /an array is not sound: slot=raid1-m0/);
});
