// The place of a volume's image: a subvolume of its own where the pool allows one there, otherwise a plain file.
import assert from "node:assert/strict";
import { imageLocationFor, withinPool } from "../../../src/volume/model/layout.ts";
import type { ImageLocation } from "../../../src/volume/model/inventory.ts";
import type { NewVolume } from "../../../src/volume/ports/store.ts";
import { missingFolder } from "../../../src/volume/rules/provision.ts";
import { type Bench, filePrefix, filePrefixOf, gib, record, slot, truth } from "../_routeros_bench.ts";
import { filesHolding, hasSubvolume, restored } from "../_routeros_images.ts";
import type { RouterKind, Scenario } from "./scenario.ts";
import { assertQuiet, on, useless } from "./store.ts";

/** The expected kinds of a volume's image and of its folder. */
interface Layout {
  readonly image: "subvolume" | "file";
  readonly folder: "subvolume" | "directory" | "pool";
}

/** Plans a volume in a folder as the driver does on this router. */
async function plan({ store, call, router }: Bench, id: string, base: string): Promise<NewVolume> {
  const names = router.model.behaviours.subvolumeNames;
  const view = await store.createView({ id, filePrefix: filePrefixOf(id), folder: base }, call());
  const pool = view.pools[0]!;
  const location = imageLocationFor(base, filePrefixOf(id), pool, names);
  const { subvolume } = location;
  return {
    id,
    location,
    sizeBytes: gib,
    comment: record,
    ...missingFolder(view, base, pool, names),
    ...subvolume === undefined ? {} : { subvolume: { ...subvolume, readOnly: false } },
  };
}

async function addPlanned(bench: Bench, id: string, base: string): Promise<ImageLocation> {
  const volume = await plan(bench, id, base);
  const { after, refusal } = await bench.store.add(volume, bench.call());
  assertQuiet(bench, refusal);
  assert.deepEqual(after.volumes.find((one) => one.id === id), truth(bench.router, id));
  const { imagePath, sizeBytes, comment } = truth(bench.router, id)!;
  assert.deepEqual([imagePath, sizeBytes, comment], [volume.location.path, gib, record]);
  return volume.location;
}

/** Two volumes are made in one folder; deleting the first removes nothing else. */
async function lodge(bench: Bench, base: string, { image, folder }: Layout): Promise<void> {
  const { store, call, router } = bench;
  const location = await addPlanned(bench, slot, base);
  const other = await addPlanned(bench, restored, base);
  const inSubvolume = image === "subvolume";
  assert.equal(location.path, inSubvolume ? `${base}/${filePrefix}/disk.img` : `${base}/${filePrefix}.img`);
  assert.equal(hasSubvolume(router, withinPool(`${base}/${filePrefix}`)), inSubvolume);
  assert.equal(hasSubvolume(router, withinPool(base)), folder === "subvolume");
  assert.ok(router.model.files.isDirectory(base.slice(1)));

  const view = await store.view(slot, filePrefix, call());
  assert.deepEqual(view.files, filesHolding(router, filePrefix));
  assert.equal(view.files.length, inSubvolume ? 2 : 1);
  const { after, refusal } = await store.remove({ id: slot, comment: record }, location, filePrefix, call());
  assertQuiet(bench, refusal);
  assert.deepEqual([after.volume, after.files, filesHolding(router, filePrefix)], [undefined, [], []]);
  assert.equal(hasSubvolume(router, withinPool(`${base}/${filePrefix}`)), false);
  assert.deepEqual((await store.inventory(call())).volumes, [truth(router, restored)]);
  assert.ok(router.model.files.find(other.path.slice(1)) !== undefined);
}

const noSubvolumes = {
  when: ({ btrfs }: RouterKind) => !btrfs,
  because: "without Btrfs images are plain files in plain folders",
};
const atTopOnly = ({ subvolumeNames }: RouterKind) => subvolumeNames === "flat";

export const layoutScenarios: readonly Scenario[] = [
  {
    name: "layout",
    run: on((bench) => lodge(bench, "/storage-pool/metal-csi", { image: "subvolume", folder: "subvolume" })),
    otherwise: [
      ...useless,
      {
        ...noSubvolumes,
        run: on((bench) => lodge(bench, "/storage-pool/metal-csi", { image: "file", folder: "directory" })),
      },
      {
        when: atTopOnly,
        because: "a subvolume at the top holds plain files, as none can be in it",
        run: on((bench) => lodge(bench, "/storage-pool/metal-csi", { image: "file", folder: "subvolume" })),
      },
    ],
  },
  {
    name: "layout at the top",
    run: on((bench) => lodge(bench, "/storage-pool", { image: "subvolume", folder: "pool" }), top()),
    otherwise: [
      ...useless,
      {
        ...noSubvolumes,
        run: on((bench) => lodge(bench, "/storage-pool", { image: "file", folder: "pool" }), top()),
      },
    ],
  },
  {
    name: "layout deep down",
    run: deep({ image: "subvolume", folder: "subvolume" }),
    otherwise: [
      ...useless,
      { ...noSubvolumes, run: deep({ image: "file", folder: "directory" }) },
      {
        when: atTopOnly,
        because: "a folder within a folder cannot be a subvolume, nor can what is in it",
        run: deep({ image: "file", folder: "directory" }),
      },
    ],
  },
];

function top() {
  return { basePaths: ["/storage-pool"] };
}

/** The parent folder is a plain folder of another user. */
function deep(layout: Layout): Scenario["run"] {
  return on(async (bench) => {
    bench.router.model.files.makeDirectories("storage-pool/theirs");
    await lodge(bench, "/storage-pool/theirs/csi", layout);
  }, { basePaths: ["/storage-pool/theirs/csi"] });
}
