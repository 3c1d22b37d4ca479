import assert from "node:assert/strict";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import { parseNfsOptions } from "./nfs_options.ts";

Deno.test("parseNfsOptions() mounts hard, sees new directories at once, and needs no reserved port", () => {
  assert.deepEqual(parseNfsOptions([]), {
    readOnly: false,
    options: ["hard", "lookupcache=positive", "noresvport"],
  });
});

Deno.test("parseNfsOptions() lets a flag replace a default or an earlier flag, in one order for all", () => {
  const { options } = parseNfsOptions([
    "timeo=100",
    "nfsvers=4.1",
    "resvport",
    "lookupcache=all",
    "timeo=50",
    "nconnect=4",
  ]);
  assert.deepEqual(options, ["hard", "lookupcache=all", "nconnect=4", "resvport", "timeo=50", "vers=4.1"]);
  const other = parseNfsOptions(["nconnect=4", "vers=4.1", "timeo=50", "lookupcache=all", "resvport"]);
  assert.deepEqual(other.options, options);
});

Deno.test("parseNfsOptions() takes every form of a version for the same option", () => {
  const forms = ["vers=4.1", "nfsvers=4.1", "v4.1"].map((flag) => parseNfsOptions([flag]).options);
  assert.ok(forms[0]!.includes("vers=4.1"));
  for (const options of forms) assert.deepEqual(options, forms[0]);
});

Deno.test("parseNfsOptions() leaves ro and rw to the binds", () => {
  assert.deepEqual(parseNfsOptions(["ro"]), { readOnly: true, options: parseNfsOptions([]).options });
});

for (
  const flag of [
    ...["soft", "softerr", "nolock", "local_lock=all", "local_lock=flock", "nosharecache", "bg", "retry=2"],
    ...[
      "vers=3",
      "nfsvers=3",
      "vers=2",
      "v3",
      "v2",
      "udp",
      "proto=udp",
      "port=2049",
      "addr=10.0.0.9",
      "clientaddr=1.1.1.1",
    ],
    ...["mountport=1", "mounthost=x", "lock", "bind", "remount", "shared", "x-mount.mkdir", "minorversion=9"],
  ]
) {
  Deno.test(`parseNfsOptions() refuses ${flag}`, () => {
    assert.throws(() => parseNfsOptions([flag]), refusal("invalid", /flag=/));
  });
}
