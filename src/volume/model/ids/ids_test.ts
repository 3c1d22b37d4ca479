import assert from "node:assert/strict";
import { aSnapshotId } from "../../../../tests/fakes/records.ts";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import {
  assertName,
  assertNodeId,
  assertVolumeId,
  isLegacyId,
  isVolumeId,
  nameDigest,
  parentFolder,
  poolOf,
  volumeIdFor,
} from "./ids.ts";
import { isSnapshotId } from "../snapshots/snapshots.ts";
import { clusterHash } from "./cluster_hash.ts";
import { decodeHandle, encodeHandle, isBackendName, splitHandle, VolumeIdPrefix } from "./handles.ts";
import { filePrefixOf } from "../image_names.ts";

const uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";

Deno.test("volumeIdFor() keeps the first 28 hex digits of a provisioner's name", () => {
  assert.equal(volumeIdFor(`pvc-${uuid}`), "pvc-0f8fad5bd9cb469fa16570867728");
});

Deno.test("volumeIdFor() turns every other name into a digest of the same form", () => {
  const names = [
    "a",
    "x".repeat(128),
    "ü".repeat(64),
    `pvc-${uuid.toUpperCase()}`,
    `pvc-${uuid}0`,
    ` pvc-${uuid}`,
    'q"uo$te;[find]',
    "../../etc",
    "pvc-",
    "storage-pool",
  ];
  const ids = names.map(volumeIdFor);
  for (const id of ids) assert.match(id, /^pvc-[0-9a-f]{28}$/);
  assert.equal(new Set(ids).size, names.length);
  for (const id of ids) assert.equal(isSnapshotId(id), false);
});

Deno.test("volumeIdFor() refuses names that are empty, too long or hold control characters", () => {
  for (
    const name of ["", "x".repeat(129), "ü".repeat(65), "a\nb", "a\r", "\0", "a\x7f", "a\u0085b", "\x1b[0m"]
  ) {
    assert.throws(() => volumeIdFor(name), refusal("invalid"), JSON.stringify(name));
    assert.throws(() => assertName(name), refusal("invalid"), JSON.stringify(name));
  }
});

Deno.test("nameDigest() distinguishes two names that share a volume id", () => {
  const other = `pvc-${uuid.slice(0, -1)}f`;
  assert.equal(volumeIdFor(other), volumeIdFor(`pvc-${uuid}`));
  assert.notEqual(nameDigest(other), nameDigest(`pvc-${uuid}`));
});

Deno.test("assertVolumeId() accepts slots of this driver and of the legacy one", () => {
  for (
    const id of [
      "a",
      "pvc-0f8fad5bd9cb469fa16570867728",
      "x".repeat(32),
      "nvme1",
      "storage-pool",
      `pvc-${uuid}`,
    ]
  ) {
    assertVolumeId(id);
  }
});

Deno.test("assertVolumeId() refuses every other form", () => {
  const ids = [
    "",
    "x".repeat(33),
    "-a",
    "a-",
    "A",
    "a b",
    "a/b",
    "..",
    "a\n",
    'a"',
    "$a",
    "a;b",
    "a]",
    "*1F",
    "a:1-00000000",
    `pvc-${uuid.toUpperCase()}`,
    `pvc-${uuid}-1`,
    "snap:a",
    aSnapshotId("a"),
    "ü",
  ];
  for (const id of ids) {
    assert.throws(() => assertVolumeId(id), refusal("invalid"), JSON.stringify(id));
    assert.equal(isVolumeId(id), false);
  }
});

Deno.test("assertNodeId() accepts host names of up to 64 bytes", () => {
  for (const id of ["n", "node-1", "worker.example.com", "N".repeat(64)]) assertNodeId(id);
});

Deno.test("assertNodeId() refuses ids that would not survive in a record", () => {
  for (const id of ["", "n".repeat(65), "a b", "a,b", "a@1", "a/w", "-a", "a.", "a}", "ü", "a\n", "a_b"]) {
    assert.throws(() => assertNodeId(id), refusal("invalid"), JSON.stringify(id));
  }
});

Deno.test("clusterHash() gives each cluster its own file names", () => {
  assert.match(clusterHash("a"), /^[0-9a-f]{8}$/);
  assert.notEqual(filePrefixOf("v", clusterHash("a")), filePrefixOf("v", clusterHash("b")));
});

Deno.test("parentFolder() and poolOf() split a path", () => {
  const path = "/pool/csi/pvc-1.0123abcd.img";
  assert.equal(parentFolder(path), "/pool/csi");
  assert.equal(poolOf(path), "pool");
  assert.equal(poolOf("/pool"), "pool");
  assert.equal(poolOf(""), "");
});

Deno.test("isLegacyId() distinguishes the legacy driver's ids from all others", () => {
  assert.equal(isLegacyId(`pvc-${uuid}`), true);
  for (const id of ["pvc-0f8fad5bd9cb469fa16570867728", "a", `pvc-${uuid}0`, `x${uuid}`, ""]) {
    assert.equal(isLegacyId(id), false, id);
  }
});

Deno.test("clusterHash() returns the digits after hash: and refuses anything similar", () => {
  const hash = clusterHash("a cluster");
  assert.equal(clusterHash(`hash:${hash}`), hash);
  for (const id of ["hash:", "hash:12", "hash:0123ABCD", "hash:0123abcd ", "hash:0123abcde"]) {
    assert.throws(() => clusterHash(id), { kind: "invalid" });
  }
});

Deno.test("isBackendName() takes DNS labels of at most 32 characters", () => {
  for (const name of ["a", "nas2", "rack-1", "0", "a".repeat(32)]) assert.ok(isBackendName(name), name);
  for (const name of ["", "-a", "a-", "A", "a.b", "a/b", "a:b", "a_b", "a".repeat(33), "ä"]) {
    assert.ok(!isBackendName(name), name);
  }
});

Deno.test("splitHandle() splits at exactly one slash after a router's name, and nowhere else", () => {
  assert.deepEqual(splitHandle("nas2/pvc-1"), { backend: "nas2", id: "pvc-1" });
  for (const handle of ["pvc-1", "", "/x", "x/", "a/b/c", "A/b", "a//b", "-/x"]) {
    assert.deepEqual(splitHandle(handle), { backend: "", id: handle });
  }
});

Deno.test("encodeHandle() gives every handle its own name, and leaves bare ids as they are", () => {
  const handles = ["pvc-1", "nas2/pvc-1", "nas2", "nas2-pvc-1", "nas/2pvc-1", "a/b", "a-b"];
  const encoded = handles.map(encodeHandle);
  assert.equal(new Set(encoded).size, handles.length);
  assert.deepEqual(encoded.map(decodeHandle), handles);
  assert.ok(encoded.every((name) => !name.includes("/")));
  assert.equal(encodeHandle("pvc-1"), "pvc-1");
});

Deno.test("VolumeIdPrefix strips only the prefix of its own router", () => {
  const [bare, named] = [new VolumeIdPrefix(""), new VolumeIdPrefix("nas2/")];
  assert.deepEqual([bare.add("x"), named.add("x")], ["x", "nas2/x"]);
  assert.deepEqual([bare.strip("x"), named.strip("nas2/x")], ["x", "x"]);
  for (const handle of ["nas2/x", "nas3/x"]) assert.equal(bare.strip(handle), undefined, handle);
  for (const handle of ["x", "nas3/x", "nas22/x", "nas2/x/y"]) {
    assert.equal(named.strip(handle), undefined, handle);
  }
  assert.equal(VolumeIdPrefix.none.strip("nas2/x"), "nas2/x");
});
