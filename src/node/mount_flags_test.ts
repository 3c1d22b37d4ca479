import assert from "node:assert/strict";
import { VolumeError } from "../volume/errors.ts";
import { parseMountFlags } from "./mount_flags.ts";

Deno.test("parseMountFlags() passes options through, once each, and takes ro and rw out", () => {
  assert.deepEqual(parseMountFlags(["noatime", "ro", "data=ordered", "noatime", "_netdev"]), {
    readOnly: true,
    flags: ["noatime", "data=ordered", "_netdev"],
  });
  assert.deepEqual(parseMountFlags(["rw"]), { readOnly: false, flags: [] });
});

Deno.test("parseMountFlags() passes a quoted SELinux label through", () => {
  const label = 'context="system_u:object_r:container_file_t:s0:c1,c2"';
  assert.deepEqual(parseMountFlags([label]).flags, [label]);
});

const bad: readonly (readonly string[])[] = [
  [""],
  ["noatime,ro"],
  ["no atime"],
  ["a\nb"],
  ["a\0"],
  ["-o"],
  ['x="a,b"'],
  ["ro", "rw"],
  ["ro=vfs"],
  ["x-mount.mkdir"],
  ["bind"],
  ["remount"],
  ["loop=/dev/loop1"],
  ["offset=512"],
  ["noload"],
  ["norecovery"],
  ["X-mount.mkdir"],
  ["logdev=/dev/sda"],
  ["x".repeat(300)],
];

for (const words of bad) {
  Deno.test(`parseMountFlags() throws invalid for ${JSON.stringify(words).slice(0, 60)}`, () => {
    assert.throws(() => parseMountFlags(words), (error) => VolumeError.is(error, "invalid"));
  });
}
