import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
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
