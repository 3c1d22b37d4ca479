import assert from "node:assert/strict";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import { contextOf, directoryParameterHelp, parseDirectoryParameters } from "./parameters.ts";

const defaults = {
  basePaths: ["/share/k8s", "/share/media"],
  addresses: [{ host: "10.0.0.1", port: 2049 }],
};
const parse = (parameters: Readonly<Record<string, string>>) =>
  parseDirectoryParameters(parameters, defaults);

Deno.test("a StorageClass without parameters gets the first folder, the router's address and mode 0777", () => {
  assert.deepEqual(parse({ "csi.storage.k8s.io/pvc/name": "x" }), {
    addresses: defaults.addresses,
    folder: "/share/k8s",
    makesFolder: true,
    mode: 0o777,
    uid: undefined,
    gid: undefined,
    ignored: [],
  });
});

Deno.test("the path of a StorageClass is one in the share, at or below a base path", () => {
  assert.equal(parse({ path: "/media/films" }).folder, "/share/media/films");
  assert.equal(
    parseDirectoryParameters({ path: "/" }, { ...defaults, basePaths: ["/share"] }).folder,
    "/share",
  );
  for (
    const path of ["/", "/mediax", "/share/k8s", "media", "/media/", "/media/..", "/media/a b", "/media/ü"]
  ) {
    assert.throws(() => parse({ path }), refusal("invalid", /path=/), path);
  }
});

Deno.test("the context says what the server exports, and the volume's path in it", () => {
  const context = contextOf(parse({ gid: "5" }), "/share/k8s/x.0123abcd");
  assert.deepEqual([context.export, context.path, context.gid], ["/share", "/share/k8s/x.0123abcd", 5]);
});

Deno.test("every key that is explained is taken, and no other", () => {
  const values: Readonly<Record<string, string>> = {
    ...{ addresses: "nas", path: "/k8s", pathType: "Directory", directoryMode: "0700" },
    ...{ uid: "1", gid: "1", mntPath: "/x" },
  };
  assert.deepEqual(Object.keys(values).toSorted(), Object.keys(directoryParameterHelp).toSorted());
  assert.deepEqual(parse(values).ignored, ["mntPath"]);
  assert.throws(() => parse({ fsType: "ext4" }), refusal("invalid", /unknown: key="fsType"/));
  assert.throws(() => parse({ pathType: "directory" }), refusal("invalid", /DirectoryOrCreate/));
});
