import assert from "node:assert/strict";
import { refusal } from "../../tests/fakes/refusal.ts";
import { LibcSysfsWriter } from "./sysfs_writer.ts";

/** Runs a test with a writer, and unloads the library after it. */
function withWriter(use: (writer: LibcSysfsWriter) => void): void {
  const writer = new LibcSysfsWriter();
  try {
    use(writer);
  } finally {
    writer.close();
  }
}

const forbidden = [
  "/sys/class/nvme/nvme0/reset_controller",
  "/sys/class/nvme/nvme0/delete_controller",
  "/sys/class/nvme/nvme0/../nvme1/fast_io_fail_tmo",
  "/sys/class/nvme/nvme0/fast_io_fail_tmo\0",
  "/tmp/fast_io_fail_tmo",
  "",
];
for (const path of forbidden) {
  Deno.test(`write() refuses ${JSON.stringify(path)}`, () =>
    withWriter((writer) => {
      assert.throws(() => writer.write(path, 1), refusal("internal", /not on the list/));
    }));
}

Deno.test("write() throws unavailable where there is no such controller", () =>
  withWriter((writer) => {
    const path = "/sys/class/nvme/nvme999999/fast_io_fail_tmo";
    assert.throws(() => writer.write(path, 1), refusal("unavailable", /does not open/));
  }));

for (const path of [...forbidden.filter((one) => !one.endsWith("/delete_controller")), "/dev/nvme-fabrics"]) {
  Deno.test(`hold() refuses ${JSON.stringify(path)}`, () =>
    withWriter((writer) => {
      assert.throws(() => writer.hold(path), refusal("internal", /not on the list/));
    }));
}

Deno.test("hold() returns undefined where there is no such controller, and loads the library once", () =>
  withWriter((writer) => {
    const { dlopen } = Deno;
    let loaded = 0;
    Deno.dlopen = (path, functions) => {
      loaded++;
      return dlopen(path, functions);
    };
    try {
      for (let times = 0; times < 3; times++) {
        assert.equal(writer.hold("/sys/class/nvme/nvme999999/delete_controller"), undefined);
      }
    } finally {
      Deno.dlopen = dlopen;
    }
    assert.equal(loaded, 1);
  }));
