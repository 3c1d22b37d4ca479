import assert from "node:assert/strict";
import type { StoredFile } from "../../volume/ports/ports.ts";
import { judgeBasePath } from "./base_paths.ts";
import type { PoolDisk } from "./pools.ts";

const pool: PoolDisk = {
  slot: "raid1",
  filesystem: "btrfs",
  label: "pool",
  mounted: true,
  mountPoint: "pool",
  state: "clean",
  sizeBytes: 10n,
  freeBytes: 5n,
};
const folder = (path: string): StoredFile => ({ path, directory: true, sizeBytes: 0n });

const cases: readonly (readonly [
  what: string,
  path: string,
  files: readonly StoredFile[],
  state: string,
  fix: RegExp,
])[] = [
  ["a folder that is there", "/pool/csi", [folder("/pool/csi")], "ok", /^$/],
  ["a folder that the first volume makes", "/pool/csi", [], "ok", /^$/],
  ["a folder in a folder that is there", "/pool/a/b", [folder("/pool/a")], "ok", /^$/],
  ["the pool itself", "/pool", [], "ok", /^$/],
  [
    "a folder in a folder that is missing",
    "/pool/a/b",
    [],
    "problem",
    /\/file\/add type=directory name="pool\/a"/,
  ],
  ["a file", "/pool/csi", [{ ...folder("/pool/csi"), directory: false }], "problem", /--base-path/],
  ["a folder on no pool", "/other/csi", [], "problem", /--base-path \/pool\//],
];

for (const [what, path, files, state, fix] of cases) {
  Deno.test(`judgeBasePath() finds ${what} to be: ${state}`, () => {
    const finding = judgeBasePath(path, files, [pool]);
    assert.equal(finding.state, state);
    assert.match(finding.fix ?? "", fix);
  });
}

Deno.test("judgeBasePath() finds nothing on a pool that is not mounted", () => {
  const finding = judgeBasePath("/pool/csi", [], [{ ...pool, mounted: false }]);
  assert.equal(finding.state, "problem");
  assert.match(finding.found, /mounted is none/);
});
