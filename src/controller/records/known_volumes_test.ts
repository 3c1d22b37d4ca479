import assert from "node:assert/strict";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { KnownVolumes } from "./known_volumes.ts";

Deno.test("a volume is known as it was remembered last, until it is forgotten", () => {
  const known = new KnownVolumes(true);
  const [one, other] = [aDisk(aRecord(), { id: "one" }), aDisk(aRecord(), { id: "other" })];
  for (const stored of [one, other, { ...one, exported: true }]) known.remember(stored);
  assert.deepEqual([known.get("one")?.exported, known.get("other")], [true, other]);
  known.forget("one");
  assert.deepEqual([known.get("one"), known.get("other")], [undefined, other]);
  known.forgetAll();
  assert.equal(known.get("other"), undefined);
});

Deno.test("nothing is known beside another controller, nor of a disk without a whole record", () => {
  const stored = aDisk(aRecord());
  const beside = new KnownVolumes(false);
  beside.remember(stored);
  assert.equal(beside.get(stored.id), undefined);
  const known = new KnownVolumes(true);
  for (const comment of ["", "a person's", stored.comment.slice(0, -1)]) {
    known.remember(stored);
    known.remember({ ...stored, comment });
    assert.equal(known.get(stored.id), undefined, comment);
  }
});

Deno.test("of more than 4,096 volumes the one that was changed longest ago is forgotten", () => {
  const known = new KnownVolumes(true);
  const stored = aDisk(aRecord());
  for (let index = 0; index < 4096; index++) known.remember({ ...stored, id: `pvc-${index}` });
  known.remember({ ...stored, id: "pvc-0" });
  known.remember({ ...stored, id: "one more" });
  const isKnown = ["pvc-0", "pvc-1", "pvc-2", "one more"].map((id) => known.get(id) !== undefined);
  assert.deepEqual(isKnown, [true, false, true, true]);
});

Deno.test("a volume that is smaller than it was is to be read, until it is as large as its image", () => {
  const known = new KnownVolumes(true);
  const stored = aDisk(aRecord());
  const grown = { ...stored, sizeBytes: 2n * stored.sizeBytes };
  const imageOf = (sizeBytes: bigint) => ({
    files: [{ path: stored.imagePath, sizeBytes, directory: false }],
  });
  known.remember(grown);
  known.forget(stored.id);
  known.remember(stored);
  assert.equal(known.get(stored.id), undefined);
  known.noteImage(stored, imageOf(grown.sizeBytes));
  known.remember(stored);
  assert.equal(known.get(stored.id), undefined);
  known.noteImage(stored, { files: [] });
  known.remember(stored);
  assert.equal(known.get(stored.id), undefined, "an image that is not shown says nothing");
  known.noteImage(stored, imageOf(stored.sizeBytes));
  known.remember(stored);
  assert.deepEqual(known.get(stored.id), stored);
});

Deno.test("a volume that is made again after its deletion is known, though the deleted one was larger", () => {
  const known = new KnownVolumes(true);
  const stored = aDisk(aRecord());
  known.remember({ ...stored, sizeBytes: 3n * stored.sizeBytes });
  known.forgetDeleted(stored.id);
  assert.equal(known.get(stored.id), undefined);
  known.remember(stored);
  assert.equal(known.get(stored.id), stored);
});

Deno.test("a volume that is smaller than it was read with its image is to be read", () => {
  const known = new KnownVolumes(true);
  const stored = aDisk(aRecord());
  const grown = { ...stored, sizeBytes: 2n * stored.sizeBytes };
  known.remember(grown);
  known.noteImage(grown, {
    files: [{ path: stored.imagePath, sizeBytes: grown.sizeBytes, directory: false }],
  });
  known.remember(stored);
  assert.equal(known.get(stored.id), undefined);
});
