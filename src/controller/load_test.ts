import assert from "node:assert/strict";
import {
  aPublish,
  gibibyte,
  testContext,
  testController,
  testParameters,
} from "../../tests/fakes/controller_deps.ts";
import { aDisk, aRecord } from "../../tests/fakes/records.ts";
import { refusal } from "../../tests/fakes/refusal.ts";
import type { FakeVolumeStore } from "../../tests/fakes/volume_store.ts";
import type { VolumeErrorKind } from "../volume/errors.ts";
import { importedSource } from "../volume/model/sources.ts";
import { publishVolume } from "./attachments/publish.ts";
import { readAt } from "./reads.ts";
import { deleteVolume } from "./volumes/delete.ts";

const imagePath = "/pool/films/data.img";

/** What happens to an imported disk between the look at its record and the one at its file. */
const cases: readonly [string, (store: FakeVolumeStore) => void, VolumeErrorKind, RegExp][] = [
  [
    "its record changes",
    (store) => store.edit("data", { comment: "mine" }),
    "busy",
    /changed at the same time/,
  ],
  ["its disk goes", (store) => store.disks.delete("data"), "busy", /changed at the same time/],
  ["its file goes", (store) => store.allFiles.delete(imagePath), "precondition", /its image does not exist/],
  ["its file shrinks", (store) => store.putFile(imagePath, gibibyte - 1n), "precondition", /is smaller than/],
];

for (const [what, happens, kind, text] of cases) {
  Deno.test(`publishVolume() of an imported volume throws ${kind} when ${what} in between`, async () => {
    const { store, deps } = testController();
    store.put(
      aDisk(aRecord({ source: importedSource("data", imagePath), blankEpoch: 0 }), { id: "data", imagePath }),
    );
    const view = store.view.bind(store);
    let looks = 0;
    store.view = (...args) => {
      if ((looks += 1) === 2) happens(store);
      return view(...args);
    };
    const before = store.disks.get("data");
    await assert.rejects(
      publishVolume(deps, "data", aPublish("a"), testParameters, testContext()),
      refusal(kind, text),
    );
    assert.equal(looks, 2);
    assert.ok(!store.disks.get("data")?.exported && before?.exported === false);
  });
}

Deno.test("deleteVolume() throws precondition for an imported volume, and removes nothing", async () => {
  const { store, deps } = testController();
  const record = aRecord({ source: importedSource("data", imagePath), blankEpoch: 0 });
  store.put(aDisk(record, { id: "data", imagePath }));
  const before = store.snapshot();
  await assert.rejects(deleteVolume(deps, "data", testContext()), refusal("precondition", /it was imported/));
  assert.deepEqual(store.snapshot(), before);
});

Deno.test("readAt() throws not-found where there is provably no disk", async () => {
  const { deps } = testController();
  const reading = readAt({ ...deps, context: testContext() }, "data", "release");
  await assert.rejects(reading, refusal("not-found", /Cannot release .* there is none/));
});
