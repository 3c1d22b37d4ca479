import assert from "node:assert/strict";
import { refusal } from "../../tests/fakes/refusal.ts";
import { libcSysfsWriter } from "./sysfs_writer.ts";

const forbidden = [
  "/sys/class/nvme/nvme0/reset_controller",
  "/sys/class/nvme/nvme0/delete_controller",
  "/sys/class/nvme/nvme0/../nvme1/fast_io_fail_tmo",
  "/sys/class/nvme/nvme0/fast_io_fail_tmo\0",
  "/tmp/fast_io_fail_tmo",
  "",
];
for (const path of forbidden) {
  Deno.test(`write() refuses ${JSON.stringify(path)}`, () => {
    assert.throws(() => libcSysfsWriter.write(path, 1), refusal("internal", /not on the list/));
  });
}

Deno.test("write() throws unavailable where there is no such controller", () => {
  const path = "/sys/class/nvme/nvme999999/fast_io_fail_tmo";
  assert.throws(() => libcSysfsWriter.write(path, 1), refusal("unavailable", /does not open/));
});

for (const path of [...forbidden.filter((one) => !one.endsWith("/delete_controller")), "/dev/nvme-fabrics"]) {
  Deno.test(`hold() refuses ${JSON.stringify(path)}`, () => {
    assert.throws(() => libcSysfsWriter.hold(path), refusal("internal", /not on the list/));
  });
}

Deno.test("hold() answers undefined where there is no such controller", () => {
  assert.equal(libcSysfsWriter.hold("/sys/class/nvme/nvme999999/delete_controller"), undefined);
});
