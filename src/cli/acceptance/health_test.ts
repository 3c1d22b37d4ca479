import assert from "node:assert/strict";
import { NotHere } from "./step.ts";
import { describeReading } from "./health.ts";

Deno.test("describeReading() counts what there is, and names values and faults in words of its own", () => {
  const drive = { slot: "nvme1", model: "TS1TUTE210T", serial: "I428940051", celsius: 41, warnings: [] };
  const worn = { ...drive, slot: "nvme2", usedPercent: 104, memberFailed: true };
  const pool = { slot: "raid10", kind: "raid", state: "degraded" };
  assert.equal(
    describeReading({ disks: [drive, worn, pool], filesystems: [{ label: "photos", activity: [] }] }),
    "2 drives, 0 partitions, 1 array, 1 Btrfs file system, " +
      "they report warnings, wear, heat, failed members, faults: MemberFailed, DriveWorn, ArrayUnsound",
  );
  assert.equal(
    describeReading({ disks: [{ slot: "sata1" }] }),
    "1 drive, 0 partitions, 0 arrays, they report none, faults: none",
  );
});

Deno.test("describeReading() says of a router that reports nothing that it cannot be shown", () => {
  assert.throws(() => describeReading({}), NotHere);
});
