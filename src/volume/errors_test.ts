import assert from "node:assert/strict";
import { PERMISSIONS } from "../../tools/permissions.ts";
import { foldersForFiles, isOfSystem, messageAbout, messageOf } from "./error_messages.ts";

/** What the runtime throws, and the words for people. */
const failures: readonly (readonly [thrown: unknown, words: RegExp])[] = [
  [
    new Deno.errors.NotCapable(
      'Requires read access to "/home/me/key", run again with the --allow-read flag',
    ),
    /^this executable may not read there; copy the file to \/etc\/rds-csi or \/tmp: \/home\/me\/key$/,
  ],
  [
    new Deno.errors.NotCapable(
      'Requires write access to "/home/me/p.json", run again with the --allow-write flag',
    ),
    /^this executable may not write there; use \/tmp, or for a node's state a folder in the kubelet's: \/home\/me\/p.json$/,
  ],
  [
    new Deno.errors.NotCapable(
      'Requires read access to "/root", specify the required permissions during compilation using `deno compile --allow-read`',
    ),
    /^this executable may not read there; copy the file to \/etc\/rds-csi or \/tmp: \/root$/,
  ],
  [
    new Deno.errors.NotCapable('Requires net access to "10.0.0.1:22", run again with the --allow-net flag'),
    /^this executable may not reach it, by the ALLOW_NET of its build: 10.0.0.1:22$/,
  ],
  [
    new Deno.errors.NotCapable('Requires run access to "ls"'),
    /^the permissions of this executable exclude it: ls$/,
  ],
  [
    new Deno.errors.NotFound("No such file or directory (os error 2): open '/x'"),
    /^there is no such file: \/x$/,
  ],
  [
    Object.assign(new Error("ENOENT: no such file or directory, open '/x'"), { code: "ENOENT" }),
    /^there is no such file: \/x$/,
  ],
  [new Deno.errors.PermissionDenied("Permission denied (os error 13)"), /^this process has no right to it$/],
  [
    Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" }),
    /^this process has no right to it$/,
  ],
  [new Deno.errors.IsADirectory("Is a directory (os error 21)"), /^it is a folder$/],
  [new Error("any other"), /^any other$/],
  [Object.assign(new Error("mount refused"), { code: "EPERM" }), /^mount refused$/],
  ["a text", /^a text$/],
  [
    new Deno.errors.NotFound("No such file or directory (os error 2): open '/tmp/it's a file'"),
    /^there is no such file: \/tmp\/it's a file$/,
  ],
  [new Deno.errors.NotFound("no such session"), /^no such session$/],
  [
    new Deno.errors.NotFound("proto error: no records found for x."),
    /^proto error: no records found for x\.$/,
  ],
];

for (const [thrown, words] of failures) {
  Deno.test(`messageOf() has words for people for ${String(thrown).slice(0, 60)}`, () => {
    assert.match(messageOf(thrown), words);
    assert.doesNotMatch(messageOf(thrown), /--allow|NotCapable|os error|Requires/);
  });
}

Deno.test("messageAbout() names no path that its reader has already", () => {
  const folder = new Deno.errors.IsADirectory("Is a directory (os error 21): readfile '/tmp'");
  assert.equal(messageOf(folder), "it is a folder: /tmp");
  assert.equal(messageAbout("/tmp", folder), "it is a folder");
  assert.equal(messageAbout("/other", folder), "it is a folder: /tmp");
  assert.equal(messageAbout("/tmp", "a text"), "a text");
});

Deno.test("the folders that messageOf() names are those that the executable may use", () => {
  const { read, write } = PERMISSIONS.demo;
  assert.deepEqual(foldersForFiles.read.filter((folder) => !read.includes(folder)), []);
  assert.deepEqual(foldersForFiles.write.filter((folder) => !write.includes(folder)), []);
});

Deno.test("isOfSystem() tells what the system refused from a fault of this program", () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  const address = new Deno.errors.AddrInUse("Address already in use (os error 98)");
  const spawn = new Deno.errors.NotFound("Failed to spawn '/none': No such file or directory (os error 2)");
  for (const error of [full, address, spawn]) assert.equal(isOfSystem(error), true, error.message);
  const wrong = Object.assign(new TypeError("The argument must be a string"), {
    code: "ERR_INVALID_ARG_TYPE",
  });
  for (const error of [wrong, new TypeError("x is undefined")]) assert.equal(isOfSystem(error), false);
});
