// A person gives a disk another slot: the volume's slot is empty, and its data, and perhaps its export, are where they were.
import assert from "node:assert/strict";
import { rememberingController } from "../../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord } from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { volumeCalls } from "../../../tests/fakes/volume_calls.ts";
import { nameDigest } from "../../volume/model/ids/ids.ts";
import { importedSource } from "../../volume/model/sources.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";

const id = "films";
const imagePath = "/pool/data/a-persons.img";
const inAnotherSlot = refusal("precondition", /was given another slot.*volume=films slot=moved/);

async function moved(isPublished: boolean, over: Partial<StoredVolume> = {}) {
  const made = rememberingController(
    aDisk(aRecord({ name: nameDigest(id), source: importedSource(id, imagePath) }), { id, imagePath }),
  );
  const { store } = made;
  const { publish, remove } = volumeCalls(made, id);
  if (isPublished) await publish();
  const disk = store.disks.get(id)!;
  store.disks.delete(id);
  store.put({ ...disk, id: "moved", ...over });
  return { ...made, remove, disk: () => store.disks.get("moved")! };
}

const cases: Readonly<Record<string, readonly [boolean, Partial<StoredVolume>?]>> = {
  "an imported volume that a node has": [true],
  "an imported volume that nobody has": [false],
  "a volume that a node has, and whose record is lost": [true, { comment: "" }],
  "a volume that a node has, on a file of another name": [true, { imagePath: "/pool/data/other.img" }],
};

for (const [what, [isPublished, over]] of Object.entries(cases)) {
  Deno.test(`deleteVolume() does not answer that there is none while its disk is in another slot: ${what}`, async () => {
    const { remove, disk } = await moved(isPublished, over);
    for (let attempt = 0; attempt < 2; attempt++) await assert.rejects(remove(), inAnotherSlot);
    assert.equal(disk().exported, isPublished);
  });
}

Deno.test("deleteVolume() answers OK beside a copy of its disk on another file, which nobody has", async () => {
  const { remove, disk } = await moved(false, { imagePath: "/pool/data/a-copy.img" });
  await remove();
  assert.ok(disk());
});
