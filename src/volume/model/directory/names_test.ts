import assert from "node:assert/strict";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import { deletedPath, directoryMark, directoryNameFor, markedDirectories, markedName } from "./names.ts";

const name = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";

Deno.test("directoryNameFor() keeps the name of a provisioner's PersistentVolume", () => {
  assert.equal(directoryNameFor(name), name);
  assert.equal(directoryNameFor("build-cache.1"), "build-cache.1");
});

Deno.test("directoryNameFor() turns every other name into a digest of the same form", () => {
  const names = ["x".repeat(41), "A", "a/b", "..", ".hidden", "a b", "a@b", "-a", "ü", "a.".repeat(3)];
  const made = names.map(directoryNameFor);
  for (const one of made) assert.match(one, /^pvc-[0-9a-f]{28}$/);
  assert.equal(new Set(made).size, names.length);
});

Deno.test("directoryNameFor() refuses names that are empty, too long or hold control characters", () => {
  for (const bad of ["", "x".repeat(129), "a\nb"]) {
    assert.throws(() => directoryNameFor(bad), refusal("invalid"));
  }
});

Deno.test("directoryMark() differs from the hash that marks the images of the same cluster", () => {
  const mark = directoryMark("0123abcd");
  assert.match(mark, /^[0-9a-f]{8}$/);
  assert.equal(new Set([mark, "0123abcd", directoryMark("0123abce")]).size, 3);
});

Deno.test("markedDirectories() finds this cluster's directories, live and deleted", () => {
  const live = `/share/k8s/${markedName(name, "0123abcd")}`;
  const deleted = deletedPath(`/share/${markedName("cache", "0123abcd")}`, "00112233");
  assert.deepEqual(markedDirectories([live, deleted], "0123abcd"), [
    { path: deleted, name: "cache", isDeleted: true },
    { path: live, name, isDeleted: false },
  ]);
});

Deno.test("markedDirectories() leaves other clusters' directories, people's, and volumes' contents alone", () => {
  const own = `/share/${markedName(name, "0123abcd")}`;
  const others = [
    `/share/${markedName(name, "ffffffff")}`,
    "/share/photos",
    "/share/.0123abcd",
    "/share/A.0123abcd",
    "/share/x.0123abcd.deleted-1",
    `${own}/${markedName("inner", "0123abcd")}`,
    `${deletedPath(own, "00112233")}/x.0123abcd.deleted-00112233`,
    `/share/x.ffffffff/y.0123abcd`,
  ];
  assert.deepEqual(markedDirectories([...others, own], "0123abcd").map(({ path }) => path), [own]);
});
