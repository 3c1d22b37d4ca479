import { refusal } from "../../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { parseMountFlags } from "./mount_flags.ts";

Deno.test("parseMountFlags() returns each option once, and takes ro and rw out", () => {
  assert.deepEqual(parseMountFlags(["noatime", "ro", "data=ordered", "noatime", "_netdev"]), {
    readOnly: true,
    flags: ["noatime", "data=ordered", "_netdev"],
  });
  assert.deepEqual(parseMountFlags(["rw"]), { readOnly: false, flags: [] });
});

const labels = [
  'context="system_u:object_r:container_file_t:s0:c1,c2"',
  'context="system_u:object_r:container_file_t:s0-s0:c0.c1023"',
  "context=system_u:object_r:container_file_t:s0",
  'fscontext="system_u:object_r:fs_t:s0:c3,c4"',
  'defcontext="system_u:object_r:file_t:s0"',
  'rootcontext="system_u:object_r:root_t:s0:c1,c2"',
];

for (const label of labels) {
  Deno.test(`parseMountFlags() passes the SELinux label ${label} through`, () => {
    assert.deepEqual(parseMountFlags([label]).flags, [label]);
  });
}

const bad: readonly (readonly string[])[] = [
  [""],
  ["noatime,ro"],
  ["no atime"],
  ["a\nb"],
  ["a\0"],
  ["-o"],
  ['x="a,b"'],
  ['context="a,b",suid'],
  ['context="a" ro"'],
  ["context=a,b"],
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
  ["errors=panic"],
  ["sb=32768"],
  ["x".repeat(300)],
];

for (const text of bad) {
  Deno.test(`parseMountFlags() throws invalid for ${JSON.stringify(text).slice(0, 60)}`, () => {
    assert.throws(() => parseMountFlags(text), refusal("invalid"));
  });
}

Deno.test("parseMountFlags() names the option that it refuses, and no value", () => {
  const cases: readonly (readonly [flag: string, named: RegExp])[] = [
    ["bind", /not allowed: flag=bind$/],
    ["noatime,nodiratime", /flag="noatime,nodiratime"; give each option as an item of its own/],
    ["secret=a,b\nc", /flag="secret";/],
    ["offset=17", /flag=offset$/],
  ];
  for (const [flag, named] of cases) {
    assert.throws(() => parseMountFlags(["noatime", flag]), refusal("invalid", named), flag);
  }
});
