import assert from "node:assert/strict";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import {
  type DirectoryContext,
  formatDirectoryContext,
  parseDirectoryContext,
  parseDirectoryOwner,
  pathInExport,
} from "./context.ts";

const full: DirectoryContext = {
  addresses: [{ host: "10.0.0.1", port: 2049 }, { host: "nas", port: 2050 }],
  export: "/share",
  path: "/share/k8s/pvc-1.0123abcd",
  mode: 0o770,
  uid: 1000,
  gid: 0,
};

Deno.test("a directory's volume context is formatted and parsed both ways", () => {
  assert.deepEqual(formatDirectoryContext(full), {
    addresses: "10.0.0.1,nas:2050",
    export: "/share",
    path: "/share/k8s/pvc-1.0123abcd",
    directoryMode: "0770",
    uid: "1000",
    gid: "0",
  });
  const bare = { ...full, mode: undefined, uid: undefined, gid: undefined };
  for (const context of [full, bare]) {
    assert.deepEqual(parseDirectoryContext(formatDirectoryContext(context)), context);
  }
});

Deno.test("parseDirectoryContext() takes / for the export of a static volume that names none", () => {
  const context = parseDirectoryContext({
    addresses: "nas",
    path: "/media",
    "csi.storage.k8s.io/pv/name": "x",
  });
  assert.equal(context.export, "/");
  assert.equal(pathInExport(context), "media");
});

Deno.test("parseDirectoryContext() says what a static volume lacks", () => {
  assert.throws(() => parseDirectoryContext({ path: "/media" }), refusal("invalid", /do not say addresses/));
  assert.throws(() => parseDirectoryContext({ addresses: "nas" }), refusal("invalid", /do not say path/));
});

Deno.test("parseDirectoryContext() refuses a path that is not inside its export", () => {
  const bad = [
    { path: "/other/x", export: "/share" },
    { path: "/shared", export: "/share" },
    { path: "/share/../etc", export: "/share" },
    { path: "share/x", export: "/" },
    { path: "/share", export: "share" },
    { path: "/share", export: "/share/" },
  ];
  for (const context of bad) {
    assert.throws(
      () => parseDirectoryContext({ addresses: "nas", ...context }),
      refusal("invalid"),
      JSON.stringify(context),
    );
  }
});

Deno.test("pathInExport() is relative to the export, however deep that is", () => {
  assert.equal(pathInExport({ path: "/share/a/b", export: "/share" }), "a/b");
  assert.equal(pathInExport({ path: "/share/a", export: "/share/a" }), "");
  assert.equal(pathInExport({ path: "/share/a", export: "/" }), "share/a");
  assert.equal(pathInExport({ path: "/", export: "/" }), "");
});

Deno.test("parseDirectoryOwner() accepts octal modes and ids, and nothing else", () => {
  assert.deepEqual(parseDirectoryOwner({ directoryMode: "2775", uid: "0", gid: "4294967294" }), {
    mode: 0o2775,
    uid: 0,
    gid: 4_294_967_294,
  });
  const bad: readonly [string, string][] = [
    ["directoryMode", ""],
    ["directoryMode", "0888"],
    ["directoryMode", "77777"],
    ["directoryMode", "rwx"],
    ["uid", "-1"],
    ["uid", ""],
    ["gid", "4294967295"],
    ["gid", "staff"],
    ["gid", "01"],
  ];
  for (const [key, value] of bad) {
    assert.throws(() => parseDirectoryOwner({ [key]: value }), refusal("invalid"), `${key}=${value}`);
  }
});
