import assert from "node:assert/strict";
import type { StoredFile } from "./inventory.ts";
import {
  describePlate,
  formatPlate,
  maxPlateBytes,
  namesById,
  type ObjectName,
  parsePlate,
  parsePlates,
  withNames,
} from "./name_plates.ts";

const id = "pvc-0f8fad5bd9cb469fa16570867728";
const legacyId = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const snapshotId = `snap-${"0a".repeat(14)}`;
const photos: ObjectName = { id, namespace: "default", name: "photos", className: "rds-ext4" };

const plate = (over: Partial<ObjectName>) => formatPlate({ ...photos, ...over })!;

Deno.test("formatPlate() writes namespace, claim, class and id, and parsePlate() reads them", () => {
  const cases: readonly [Partial<ObjectName>, string][] = [
    [{}, `default_photos_rds-ext4_${id}`],
    [{ className: "" }, `default_photos__${id}`],
    [{ name: "a.b-c.d", className: "x.y" }, `default_a+b-c+d_x+y_${id}`],
    [{ id: "disk1" }, "default_photos_rds-ext4_disk1"],
    [{ id: snapshotId }, `default_photos_rds-ext4_${snapshotId}`],
    // These would begin like a snapshot or a volume of the legacy driver.
    [{ namespace: "snap-1" }, `snap+-1_photos_rds-ext4_${id}`],
    [{ namespace: "pvc-1" }, `pvc+-1_photos_rds-ext4_${id}`],
    [{ id: legacyId }, `default_photos_rds-ext4_pvc+-${legacyId.slice(4)}`],
    [{ name: `of-${legacyId}` }, `default_of-pvc+-${legacyId.slice(4)}_rds-ext4_${id}`],
    [{ name: "rds-csi-probe-01234567" }, `default_rds-csi-probe+-01234567_rds-ext4_${id}`],
    [{ name: "my-pvc-claim" }, `default_my-pvc-claim_rds-ext4_${id}`],
  ];
  for (const [over, text] of cases) {
    assert.equal(plate(over), text);
    assert.deepEqual(parsePlate(text), { ...photos, ...over, isCut: false });
  }
});

Deno.test("formatPlate() makes nothing of what Kubernetes or this driver does not name", () => {
  const wrong: readonly Partial<ObjectName>[] = [
    { namespace: "" },
    { namespace: "a.b" },
    { namespace: "a_b" },
    { name: "" },
    { name: "a..b" },
    { name: "-a" },
    { name: "a/b" },
    { name: "A" },
    { className: "a_b" },
    { id: "" },
    { id: "a.b" },
    { id: "default/pvc-1" },
  ];
  for (const over of wrong) {
    assert.equal(formatPlate({ ...photos, ...over }), undefined, JSON.stringify(over));
  }
});

Deno.test("a name that is too long is cut, keeps the id, and is known as cut", () => {
  const long = plate({ name: "x".repeat(253), className: "c".repeat(253), namespace: "n".repeat(63) });
  assert.equal(long.length, maxPlateBytes);
  assert.match(long, new RegExp(`^n{63}_x+_c+_${id}~$`));
  const parsed = parsePlate(long)!;
  assert.deepEqual([parsed.id, parsed.isCut], [id, true]);
  assert.match(describePlate(parsed), /^n+\/x+…$/);
  const room = maxPlateBytes - plate({ name: "" + "a" }).length + 1;
  assert.equal(parsePlate(plate({ name: "x".repeat(room) }))?.isCut, false);
  assert.equal(parsePlate(plate({ name: "x".repeat(room + 1) }))?.isCut, true);
});

Deno.test("parsePlate() reads no text that formatPlate() does not make", () => {
  const wrong = [
    "",
    id,
    `default_photos_${id}`,
    `default_photos_rds-ext4_${id}_more`,
    `default_photos_rds-ext4_${id}.img`,
    `default_pho.tos_rds-ext4_${id}`,
    `default_photos_rds-ext4_${legacyId}`,
    `snap-1_photos_rds-ext4_${id}`,
    `default_my+-claim_rds-ext4_${id}`,
    `Default_photos_rds-ext4_${id}`,
    `default_photos_rds-ext4_a.b~`,
    `default_${"x".repeat(200)}_rds-ext4_${id}`,
  ];
  for (const text of wrong) assert.equal(parsePlate(text), undefined, text);
});

Deno.test("parsePlates() finds the plates of a cluster in the allowed folders, and says which of them are full", () => {
  const folder = (path: string): StoredFile => ({ path, directory: true, sizeBytes: 0n });
  const plates = "/pool/csi/names-of-0123abcd";
  const files = [
    folder(plates),
    folder(`${plates}/${plate({ name: "b" })}`),
    { ...folder(`${plates}/${plate({ name: "b" })}/note.txt`), directory: false },
    folder(`${plates}/${plate({ name: "a" })}`),
    folder(`${plates}/a person's folder`),
    { ...folder(`${plates}/${plate({ name: "c" })}`), directory: false },
    folder(`/pool/csi/names-of-ffffffff/${plate({ name: "d" })}`),
    folder(`/other/names-of-0123abcd/${plate({ name: "e" })}`),
  ];
  const found = parsePlates(files, "0123abcd", ["/pool/csi", "/fast"]);
  assert.deepEqual(found.map(({ name, isFull }) => [name, isFull]), [["a", false], ["b", true]]);
  // Another cluster's claim may have the name of the folder; what has no folder of that name is no plate, wherever it is.
  const of = plate({ name: "names-of-0123abcd" });
  const others = [folder(`/pool/csi/names-of-ffffffff/${of}`), folder(`/${"x".repeat(17)}${of}`)];
  const all = parsePlates([...files, ...others], "0123abcd", undefined);
  assert.deepEqual(all.map(({ name }) => name), ["e", "a", "b"]);
});

Deno.test("withNames() puts the name of a volume behind its id, and changes no path", () => {
  const plates = [
    { ...photos, isCut: false },
    { ...photos, id: "disk1", name: "a", isCut: false },
    { ...photos, id: "disk1", name: "b", isCut: true },
    { ...photos, id: "volume", isCut: false },
  ];
  const named = (text: string) => withNames(text, namesById(plates));
  assert.equal(
    named(`${id}: it is away; volume=${id}.`),
    `${id} [default/photos]: it is away; volume=${id} [default/photos].`,
  );
  assert.equal(named("volume disk1, disk12"), "volume disk1 [default/a or default/b…], disk12");
  const path = `/pool/csi/${id}.0123abcd/disk.img and /pool/${id} and ${id}:4-0a`;
  assert.equal(named(path), path);
});
