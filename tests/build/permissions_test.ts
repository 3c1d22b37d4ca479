import assert from "node:assert/strict";
import { join } from "node:path";
import { PERMISSIONS } from "../../tools/permissions.ts";
import { kubeletFolders } from "../../src/cli/serve/privileges.ts";
import { BINARY, isBuilt, runBinary } from "./binary.ts";
import { makeScratch } from "../support/scratch.ts";

const ignore = !isBuilt;
const kubelet = kubeletFolders[0]!;
const LIBC = PERMISSIONS.node.ffi.find((path) => path.includes(`/${Deno.build.arch}-`)) ?? "";

/** Actions of the executable and their expected ends: beside every refused action, one of its kind that works. */
const TRIES: readonly [name: string, args: readonly string[], expected: RegExp][] = [
  ["runs a tool of its list", ["--try-run", "/usr/bin/stat"], /^done: /],
  [
    "refuses to run a tool outside of its list",
    ["--try-run", "/usr/bin/id"],
    /^refused: the permissions of this executable exclude it: \/.+$/m,
  ],
  [
    "refuses to run a shell",
    ["--try-run", "/bin/sh"],
    /^refused: the permissions of this executable exclude it: \/.+$/m,
  ],
  ["loads the C library", ["--try-load", LIBC], /^done: /],
  [
    "refuses to load another library",
    ["--try-load", LIBC.replace("libc", "libm")],
    /^refused: the permissions of this executable exclude it: \/.+$/m,
  ],
  [
    "refuses to read a file outside of its folders",
    ["--try-read", "/etc/passwd"],
    /^refused: .*may not read there/,
  ],
  [
    "refuses to write outside of its folders",
    ["--try-write", "/etc/rds-csi-test"],
    /^refused: .*may not write there/,
  ],
  ["sees a variable of its list", ["--try-env", "NODE_ID"], /^done: set: NODE_ID/],
  ["does not see a variable outside of its list", ["--try-env", "SECRET"], /^done: not set: SECRET/],
  [
    "as a controller refuses to run any tool",
    ["--controller", "--try-run", "/usr/bin/stat"],
    /^refused: the permissions of this executable exclude it: \/.+$/m,
  ],
  [
    "as a controller refuses to load any library",
    ["--controller", "--try-load", LIBC],
    /^refused: the permissions of this executable exclude it: \/.+$/m,
  ],
  ["reads a kubelet's folder", ["--try-read", `${kubelet}/none`], /^failed: /],
  [
    "as a controller refuses to read a kubelet's folder",
    ["--controller", "--try-read", `${kubelet}/none`],
    /^refused: .*may not read there/,
  ],
  [
    "as a controller refuses to write to a kubelet's folder",
    ["--controller", "--try-write", `${kubelet}/none/none`],
    /^refused: .*may not write there/,
  ],
  ["as a controller reads its settings", ["--controller", "--try-read", "/etc/rds-csi/none"], /^failed: /],
];

for (const [name, args, expected] of TRIES) {
  Deno.test({
    name: `the executable ${name}`,
    ignore,
    fn: async () => {
      const { code, stdout, stderr } = await runBinary(["permissions", ...args], {
        NODE_ID: "a",
        SECRET: "b",
      });
      assert.match(stdout, expected, stderr);
      assert.equal(code, expected.source.startsWith("^done") ? 0 : 1);
    },
  });
}

Deno.test({
  name: "the executable reads and writes below /tmp, where the demo works",
  ignore,
  fn: async () => {
    await using scratch = await makeScratch();
    const folder = scratch.path;
    const file = join(folder, "file");
    assert.match((await runBinary(["permissions", "--try-write", file])).stdout, /^done: /);
    assert.match((await runBinary(["permissions", "--try-read", file])).stdout, /^done: /);
  },
});

Deno.test({
  name: "the executable reports its version, and leaves no cache behind",
  ignore,
  fn: async () => {
    await using scratch = await makeScratch();
    const folder = scratch.path;
    const { code, stdout } = await runBinary(["version"], { TMPDIR: folder, HOME: folder });
    assert.equal(code, 0);
    assert.match(stdout, /^rds-csi \d+\.\d+\.\d+ \(commit [0-9a-f]{40}(-dirty)?, deno \d+\./);
    assert.deepEqual([...Deno.readDirSync(folder)], []);
  },
});

Deno.test({
  name: "the executable has at most 110 MB",
  ignore,
  fn: () => {
    assert.ok(Deno.statSync(BINARY).size <= 110_000_000);
  },
});
