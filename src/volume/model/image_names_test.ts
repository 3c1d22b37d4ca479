import assert from "node:assert/strict";
import { baseOf, filePrefixOf, isImageOf, volumeOfImage } from "./image_names.ts";

const filePrefix = filePrefixOf("pvc-1", "0123abcd");

Deno.test("filePrefixOf() names volume and cluster", () => assert.equal(filePrefix, "pvc-1.0123abcd"));

Deno.test("isImageOf() recognises both forms in any folder, and nothing similar", () => {
  for (const base of ["/pool/csi", "/pool", "/fast/csi", "/pool/old/deep"]) {
    for (const path of [`${base}/${filePrefix}.img`, `${base}/${filePrefix}/disk.img`]) {
      assert.equal(isImageOf(path, filePrefix), true, path);
      assert.equal(volumeOfImage(path, "0123abcd"), "pvc-1");
      assert.equal(baseOf(path, filePrefix), base);
    }
  }
  const others = [
    `/pool/csi/${filePrefix}`,
    `/pool/csi/${filePrefix}.img.0123abcd.part`,
    `/pool/csi/${filePrefix}/other.img`,
    `/pool/csi/${filePrefix}/deep/disk.img`,
    `/pool/csi/${filePrefix}0.img`,
    `/pool/csi/${filePrefix}0/disk.img`,
    `/pool/csi/x${filePrefix}.img`,
    `/pool/csi/x-${filePrefix}/disk.img`,
    `/pool/csi/pvc-1.0123abce.img`,
    `/pool/csi/pvc-1.img`,
    `/pool/csi/snap-x.pvc-1.zz.n.0123abcd.img`,
    `${filePrefix}.img`,
  ];
  for (const path of others) {
    assert.equal(isImageOf(path, filePrefix), false, path);
    assert.notEqual(volumeOfImage(path, "0123abcd"), "pvc-1", path);
  }
});

Deno.test("volumeOfImage() knows the legacy driver's names, and those of no other cluster", () => {
  const legacyId = "pvc-00000000-0000-0000-0000-00000000000a";
  assert.equal(volumeOfImage(`/pool/csi/${legacyId}.img`, "0123abcd"), legacyId);
  const others = [
    `/pool/csi/${legacyId}.0123abcd.img`,
    `/pool/csi/${legacyId}/disk.img`,
    "/pool/csi/pvc-1.ffffffff.img",
    "/pool/csi/data.img",
    "/pool/csi/pvc-1.0123abcd",
    "/pool/disk.img",
  ];
  for (const path of others) assert.equal(volumeOfImage(path, "0123abcd"), undefined, path);
});

Deno.test("baseOf() goes by the last segment that is the volume's", () => {
  assert.equal(baseOf(`/pool/${filePrefix}/${filePrefix}/disk.img`, filePrefix), `/pool/${filePrefix}`);
});
