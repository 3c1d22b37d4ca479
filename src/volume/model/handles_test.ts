import assert from "node:assert/strict";
import { decodeHandle, encodeHandle, HandleBorder, isBackendName, splitHandle } from "./handles.ts";

Deno.test("isBackendName() takes DNS labels of at most 32 characters", () => {
  for (const name of ["a", "nas2", "rack-1", "0", "a".repeat(32)]) assert.ok(isBackendName(name), name);
  for (const name of ["", "-a", "a-", "A", "a.b", "a/b", "a:b", "a_b", "a".repeat(33), "ä"]) {
    assert.ok(!isBackendName(name), name);
  }
});

Deno.test("splitHandle() takes exactly one slash after a router's name, and nothing else apart", () => {
  assert.deepEqual(splitHandle("nas2/pvc-1"), { backend: "nas2", id: "pvc-1" });
  for (const handle of ["pvc-1", "", "/x", "x/", "a/b/c", "A/b", "a//b", "-/x"]) {
    assert.deepEqual(splitHandle(handle), { backend: "", id: handle });
  }
});

Deno.test("encodeHandle() gives no two handles one name, and leaves bare ids as they are", () => {
  const handles = ["pvc-1", "nas2/pvc-1", "nas2", "nas2-pvc-1", "nas/2pvc-1", "a/b", "a-b"];
  const encoded = handles.map(encodeHandle);
  assert.equal(new Set(encoded).size, handles.length);
  assert.deepEqual(encoded.map(decodeHandle), handles);
  assert.ok(encoded.every((name) => !name.includes("/")));
  assert.equal(encodeHandle("pvc-1"), "pvc-1");
});

Deno.test("HandleBorder lets in what is its own router's alone", () => {
  const [bare, named] = [new HandleBorder(""), new HandleBorder("nas2/")];
  assert.deepEqual([bare.handleOf("x"), named.handleOf("x")], ["x", "nas2/x"]);
  assert.deepEqual([bare.idOf("x"), named.idOf("nas2/x")], ["x", "x"]);
  for (const handle of ["nas2/x", "nas3/x"]) assert.equal(bare.idOf(handle), undefined, handle);
  for (const handle of ["x", "nas3/x", "nas22/x", "nas2/x/y"]) {
    assert.equal(named.idOf(handle), undefined, handle);
  }
});
