// Names of files on the router. A snapshot's name has all of its data, and cannot be another one's name. A removal for
// one volume or snapshot never includes another owner's file, whatever lies beside it.
import assert from "node:assert/strict";
import fc from "fast-check";
import { isVolumeId } from "../../src/volume/model/ids/ids.ts";
import { isSnapshotId, snapshotIdFor } from "../../src/volume/model/snapshots/snapshots.ts";
import { filePrefixOf } from "../../src/volume/model/image_names.ts";
import { leftoversOf } from "../../src/volume/model/layout.ts";
import type { Pool, StoredFile } from "../../src/volume/model/inventory.ts";
import {
  anySnapshot,
  formatSnapshotName,
  ownSnapshots,
  parseSnapshots,
  snapshotLocations,
  type SnapshotName,
  snapshotPart,
} from "../../src/volume/model/snapshots/snapshots.ts";
import { propertyTest } from "./_property.ts";

const bases = ["/pool/csi", "/pool", "/fast/csi"];
const pools: readonly Pool[] = ["pool", "fast"].map((mountPoint) => ({
  mountPoint,
  filesystem: "btrfs",
  sizeBytes: 1n,
  freeBytes: 1n,
  state: "",
  subvolumeLabel: `${mountPoint}-fs`,
}));

function hex(digits: number): fc.Arbitrary<string> {
  const digit = fc.constantFrom(..."01af");
  return fc.string({ unit: digit, minLength: digits, maxLength: digits, size: "max" });
}

/** Ids with equal beginnings and ends, and ids that a person chooses. */
const volumeId = fc.oneof(
  hex(28).map((digits) => `pvc-${digits}`),
  fc.constantFrom(
    "a",
    "b",
    "n",
    "pvc",
    "pvc-1",
    "pvc-11",
    "x-pvc-1",
    "snap",
    "snap-0",
    "0",
    "img",
    "disk-img",
  ),
  fc.string({ unit: fc.constantFrom(..."ab01-"), minLength: 1, maxLength: 40 }).filter(isVolumeId),
);
const cluster = fc.oneof(fc.constantFrom("1a2b3c4d", "00000000"), hex(8));
const nonce = hex(8);
const name: fc.Arbitrary<SnapshotName> = fc.record({
  id: hex(28).map((digits) => `snap-${digits}`),
  source: volumeId,
  createdAtSeconds: fc.oneof(fc.nat(2 ** 31), fc.constantFrom(0, 1, 36 ** 8 - 1)),
  blank: fc.boolean(),
  encrypted: fc.boolean(),
  cluster,
}, { noNullPrototype: true });
const base = fc.constantFrom(...bases);

function file(path: string): StoredFile {
  return { path, sizeBytes: 7n, directory: false };
}

function folder(path: string): StoredFile {
  return { path, sizeBytes: 0n, directory: true };
}

/** The possible files of a snapshot's image. */
const layouts: Readonly<Record<string, (at: string, nonce: string) => readonly StoredFile[]>> = {
  "in a subvolume": (at) => [folder(at), file(`${at}/disk.img`)],
  "as a file": (at) => [file(`${at}.img`)],
  "as a copy that goes on": (at, nonce) => [file(`${at}.img.${nonce}.part`)],
};

for (const [how, lie] of Object.entries(layouts)) {
  propertyTest(
    `a snapshot ${how} is read from its path as it was written`,
    2000,
    fc.property(name, base, nonce, (name, base, nonce) => {
      const files = lie(`${base}/${formatSnapshotName(name)}`, nonce);
      const ready = !how.includes("goes on");
      const stored = { ...name, imagePath: files.at(-1)!.path, sizeBytes: 7n, ready };
      assert.deepEqual(parseSnapshots(files), [stored]);
      assert.deepEqual(ownSnapshots([stored], name.cluster, bases), [stored]);
      assert.deepEqual(
        ownSnapshots([stored], "ffffffff", bases),
        name.cluster === "ffffffff" ? [stored] : [],
      );
      assert.ok(files.every(({ path }) => path.includes(anySnapshot)));
      assert.ok(files.every(({ path }) => path.includes(snapshotPart(name.id))));
      assert.ok(files.every(({ path }) => path.includes(`.${name.source}.`)));
    }),
  );
}

propertyTest(
  "a snapshot id is no volume id, and two names never meet in one",
  4000,
  fc.property(
    fc.string({ minLength: 1, maxLength: 40 }),
    fc.string({ minLength: 1, maxLength: 40 }),
    cluster,
    (one, other, cluster) => {
      const printable = (text: string) => text.replace(/[\p{C}]/gu, "-").trim() || "x";
      const [first, second] = [one, other].map((text) => snapshotIdFor(printable(text), cluster));
      assert.ok(isSnapshotId(first!) && !isVolumeId(first!));
      assert.equal(first === second, printable(one) === printable(other));
    },
  ),
);

/** Files of many volumes and snapshots with very similar names, and files of people. */
const litter = fc.array(
  fc.oneof(
    fc.tuple(
      base,
      volumeId,
      cluster,
      fc.constantFrom("", ".img", "/disk.img", ".img.0000af11.part", ".img.bak", "/x"),
    )
      .map(([base, id, cluster, end]) => `${base}/${filePrefixOf(id, cluster)}${end}`),
    fc.tuple(base, name, fc.constantFrom("", ".img", "/disk.img", ".img.0000af11.part", ".bak"))
      .map(([base, name, end]) => `${base}/${formatSnapshotName(name)}${end}`),
    fc.tuple(base, volumeId, cluster).map(([base, id, cluster]) =>
      `${base}/old/${filePrefixOf(id, cluster)}.img`
    ),
    fc.tuple(volumeId, cluster).map(([id, cluster]) => `/other/${filePrefixOf(id, cluster)}.img`),
  ),
  { maxLength: 12 },
).map((paths) =>
  [...new Set(paths)].map((path) => /\.(img|part|bak)$|\/x$/.test(path) ? file(path) : folder(path))
);

/** Returns the files that a removal at that path removes. */
function taken(path: string, files: readonly StoredFile[]): string[] {
  const within = path.endsWith("/disk.img") ? path.slice(0, -"/disk.img".length) : path;
  return files.map((one) => one.path).filter((one) => one === within || one.startsWith(`${within}/`));
}

propertyTest(
  "what is removed for a volume is its image, its subvolume and its unfinished copies, and nothing else",
  8000,
  fc.property(
    volumeId,
    cluster,
    litter,
    fc.subarray(bases, { minLength: 1 }),
    (id, cluster, files, bases) => {
      const filePrefix = filePrefixOf(id, cluster);
      const own = files.filter(({ path, directory }) =>
        bases.some((base) =>
          directory ? path === `${base}/${filePrefix}` : [
            `${base}/${filePrefix}.img`,
            `${base}/${filePrefix}/disk.img`,
            `${base}/${filePrefix}.img.0000af11.part`,
          ]
            .includes(path)
        )
      ).map(({ path }) => path.replace(/\/disk\.img$/, ""));
      // The files in the volume's own folder are removed with it, even where only its files are listed.
      const within = files.map(({ path }) => path).filter((path) =>
        own.some((one) => path === one || path.startsWith(`${one}/`))
      );
      const asked = files.filter(({ path }) => path.includes(filePrefix));
      const removed = leftoversOf(asked, filePrefix, bases, pools).flatMap(({ path }) => taken(path, files));
      assert.deepEqual([...new Set(removed)].toSorted(), [...new Set(within)].toSorted());
    },
  ),
);

propertyTest(
  "what is removed for a snapshot has its id and its cluster, in the allowed folders, and nothing else goes",
  8000,
  fc.property(
    name,
    litter,
    fc.subarray(bases, { minLength: 1 }),
    base,
    fc.constantFrom(...Object.values(layouts)),
    (
      name,
      litter,
      allowed,
      base,
      lie,
    ) => {
      const at = `${base}/${formatSnapshotName(name)}`;
      const own = lie(at, "0a1f0a1f");
      const files = [...litter.filter(({ path }) => !path.startsWith(at)), ...own];
      const asked = files.filter(({ path }) => path.includes(snapshotPart(name.id)));
      const locations = snapshotLocations(asked, name.id, name.cluster, allowed, pools);
      const removed = locations.flatMap(({ path }) => taken(path, files));
      for (const path of removed) {
        const inBase = allowed.find((base) => path.startsWith(`${base}/${name.id}.`));
        assert.ok(inBase !== undefined, path);
        assert.ok(path.slice(inBase.length + 1).split("/")[0]!.includes(`.${name.cluster}`), path);
      }
      const ownPaths = own.map(({ path }) => path);
      if (allowed.includes(base)) assert.ok(ownPaths.every((path) => removed.includes(path)));
    },
  ),
);
