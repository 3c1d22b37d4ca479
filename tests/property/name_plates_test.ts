// Name plates. What they say is read back, and no query of the driver, and no search for what has no owner, meets one,
// whatever tenants call their claims.
import assert from "node:assert/strict";
import fc from "fast-check";
import { scratchPrefix } from "../../src/doctor/probe/names.ts";
import { markedQuery } from "../../src/routeros/directories/statements.ts";
import { fileName, holding } from "../../src/routeros/store/queries.ts";
import { directoryMark, markedDirectories } from "../../src/volume/model/directory/names.ts";
import { filePrefixOf, volumeOfImage } from "../../src/volume/model/image_names.ts";
import { leftoversOf } from "../../src/volume/model/layout.ts";
import type { Pool, StoredFile } from "../../src/volume/model/inventory.ts";
import {
  formatPlate,
  maxPlateBytes,
  type ObjectName,
  parsePlate,
  parsePlates,
  platesFolder,
} from "../../src/volume/model/name_plates.ts";
import {
  anySnapshot,
  parseSnapshotFolder,
  parseSnapshots,
  snapshotLocations,
  snapshotPart,
  sourcePart,
} from "../../src/volume/model/snapshots/snapshots.ts";
import { judgeAudit } from "../../src/volume/rules/audit/audit.ts";
import { judgePlates, planPlates } from "../../src/volume/rules/name_plates.ts";
import { aDisk, aRecord } from "../fakes/records.ts";
import { propertyTest } from "./_property.ts";

const mark = "0123abcd";
const base = "/pool/csi";
const pool: Pool = {
  ...{ mountPoint: "pool", filesystem: "btrfs", state: "clean", subvolumeLabel: undefined },
  ...{ sizeBytes: 1n << 40n, freeBytes: 1n << 40n },
};

function hex(digits: number): fc.Arbitrary<string> {
  return fc.string({ unit: fc.constantFrom(..."01af"), minLength: digits, maxLength: digits, size: "max" });
}

const legacyId = fc.tuple(hex(8), hex(4), hex(4), hex(4), hex(12)).map((parts) => `pvc-${parts.join("-")}`);
const volumeId = fc.oneof(
  hex(28).map((digits) => `pvc-${digits}`),
  legacyId,
  fc.constantFrom("a", "snap", "pvc", "pvc-1", "disk-img", "names-of-0123abcd", "rds-csi-probe-01234567"),
);
const snapshotId = hex(28).map((digits) => `snap-${digits}`);

/** Pieces by which a tenant would meet a query. */
const piece = fc.oneof(
  legacyId,
  volumeId,
  snapshotId,
  fc.constantFrom(
    "pvc-",
    "snap-",
    "rds-csi-probe-",
    "0123abcd",
    "img",
    "part",
    "deleted-",
    "names-of-",
    "-",
    "--",
  ),
  fc.constantFrom("a", "0", "b.c", "x"),
);
const joiner = fc.constantFrom("", "-", ".");
const text = fc.array(fc.tuple(piece, joiner), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.flat().join(""));
const subdomain = text.map((name) => {
  const labels = name.slice(0, 253).split(".").map((label) => label.replace(/^-+|-+$/g, ""));
  return labels.filter((label) => label !== "").join(".") || "a";
});
const label = subdomain.map((name) => name.replaceAll(".", "").slice(0, 63).replace(/-+$/, ""));

const objectName: fc.Arbitrary<ObjectName> = fc.record({
  id: fc.oneof(volumeId, snapshotId),
  namespace: label,
  name: subdomain,
  className: fc.oneof(subdomain, fc.constant("")),
});

const folder = (path: string): StoredFile => ({ path, directory: true, sizeBytes: 0n });
const pathOf = (name: ObjectName) => `${base}/${platesFolder(mark)}/${formatPlate(name)!}`;

propertyTest(
  "a plate is read back as it was written, and one that is too long as cut",
  500,
  fc.property(objectName, (name) => {
    const written = formatPlate(name)!;
    assert.ok(written.length <= maxPlateBytes && /^[a-z0-9+_~-]+$/.test(written));
    const read = parsePlate(written);
    if (written.endsWith("~")) assert.deepEqual([read?.id, read?.isCut], [name.id, true]);
    else assert.deepEqual(read, { ...name, isCut: false });
  }),
);

propertyTest(
  "two names have two plates, unless one is cut",
  500,
  fc.property(objectName, objectName, (a, b) => {
    if (formatPlate(a) !== formatPlate(b) || formatPlate(a)!.endsWith("~")) return;
    assert.deepEqual(a, b);
  }),
);

/** Every regular expression by which this driver looks for files, apart from the plates' own. */
function patternsOf(id: string, snapshot: string): RegExp[] {
  const parts = [
    `.${mark}`,
    "/pvc-",
    anySnapshot,
    snapshotPart(snapshot),
    sourcePart(id),
    filePrefixOf(id, mark),
    `${base}/${filePrefixOf(id, mark)}.img`,
    `${base}/${filePrefixOf(id, mark)}/disk.img`,
    `/${filePrefixOf(id, mark)}/`,
  ];
  // Where a list comes in parts, each part's pattern holds one of these.
  return [
    ...parts.map(holding),
    scratchPrefix,
    ...[mark, directoryMark(mark)].flatMap((one) =>
      [...markedQuery(base, one).text.matchAll(/ name~"([^"]*)"/g)].map(([, found]) => found!)
    ),
  ].map((pattern) => new RegExp(pattern));
}

propertyTest(
  "no query of the driver finds a plate, of whatever volume or snapshot",
  500,
  fc.property(objectName, volumeId, snapshotId, (name, id, snapshot) => {
    const path = pathOf(name);
    for (const own of isOwn(name.id) ? [id, name.id] : [id]) {
      for (const pattern of patternsOf(own, snapshot)) {
        // `/file` spells paths without the first slash.
        for (const spelled of [path, fileName(path)]) {
          if (pattern.test(spelled)) throw new Error(`${pattern} finds ${spelled}`);
        }
      }
    }
  }),
);

function isOwn(id: string): boolean {
  return !/^snap-[0-9a-f]{28}$/.test(id);
}

propertyTest(
  "no plate counts as a volume, a snapshot, a leftover or a directory, nor as something without an owner",
  200,
  fc.property(
    fc.array(objectName, { minLength: 1, maxLength: 5 }),
    volumeId,
    snapshotId,
    (names, id, snapshot) => {
      const files = [folder(`${base}/${platesFolder(mark)}`), ...names.map((name) => folder(pathOf(name)))];
      const bases = [base, "/pool"];
      assert.deepEqual(parseSnapshots(files), []);
      for (const file of files) {
        assert.equal(parseSnapshotFolder(file), undefined);
        assert.equal(volumeOfImage(file.path, mark), undefined);
      }
      for (const one of [id, ...names.map((name) => name.id).filter(isOwn)]) {
        assert.deepEqual(leftoversOf(files, filePrefixOf(one, mark), bases, []), []);
      }
      assert.deepEqual(snapshotLocations(files, snapshot, mark, bases, []), []);
      assert.deepEqual(markedDirectories(files.map(({ path }) => path), directoryMark(mark)), []);
      const scope = {
        cluster: mark,
        basePaths: bases,
        used: undefined,
        vouched: true,
        nowMs: Date.parse("2026-01-01T00:00:00Z"),
        isCopying: () => false,
      };
      assert.deepEqual(judgeAudit({ pools: [], upMs: 10 ** 9, volumes: [], files }, scope), []);
    },
  ),
);

/** Names of few claims, many of which are long, for volumes whose ids are short and long. */
const likeNames = fc.array(
  fc.record({
    id: fc.oneof(volumeId, fc.constantFrom("b", "films", `pvc-${"1f".repeat(14)}`)),
    namespace: fc.constantFrom("default", "n".repeat(63), `pvc-${"m".repeat(59)}`),
    name: fc.tuple(
      fc.integer({ min: 1, max: 90 }),
      fc.constantFrom("x", ".y", `pvc-0f8fad5b-${"z".repeat(8)}`),
    )
      .map(([length, end]) => "x".repeat(length) + end),
    className: fc.constantFrom("", "rds-ext4", "c".repeat(60)),
  }),
  { minLength: 1, maxLength: 6 },
).chain((names) =>
  // Another volume has the claim of one of them too.
  fc.tuple(fc.constant(names), fc.nat(names.length - 1), volumeId, fc.constantFrom("", "rds-xfs")).map(
    ([names, at, id, className]) => [...names, { ...names[at]!, id, className }],
  )
);

propertyTest(
  "a claim is rebuilt for the volume that had it, and for none where another volume had it too",
  1_000,
  fc.property(likeNames, (names) => {
    const claimOf = ({ namespace, name }: ObjectName) => `${namespace}/${name}`;
    for (const [id, verdict] of judgePlates(names.map((name) => parsePlate(formatPlate(name)!)!))) {
      if ("reason" in verdict) continue;
      const claims = names.filter((name) => name.id === id).map(claimOf);
      const claim = claimOf(verdict.plate);
      assert.deepEqual([...new Set(claims)], [claim]);
      const owners = new Set(names.filter((name) => claimOf(name) === claim).map((name) => name.id));
      assert.deepEqual([...owners], [id]);
    }
  }),
);

/** What happens between two plans: the claims of some volumes change, and the router does a part of the plan. */
const turns = fc.array(
  fc.record({
    claims: fc.dictionary(fc.constantFrom("a", "b", "films"), fc.constantFrom("x", "y.z", "w"), {
      maxKeys: 3,
    }),
    /** Whose disks are there. */
    disks: fc.subarray(["a", "b", "films"]),
    isMounted: fc.boolean(),
    /** How much of the plan is done. */
    done: fc.nat(6),
    skip: fc.nat(5),
  }),
  { minLength: 1, maxLength: 12 },
);

propertyTest(
  "plates come to what the cluster says whatever was done of earlier plans, and a volume keeps one until then",
  300,
  fc.property(turns, (all) => {
    let paths = new Set<string>();
    const plates = () => parsePlates([...paths].map(folder), mark, [base]);
    const turn = ({ claims, disks, isMounted, skip }: Omit<typeof all[number], "done">, done: number) => {
      const plan = planPlates({
        ...{ cluster: mark, basePaths: [base], skip, files: isMounted ? [...paths].map(folder) : [] },
        pools: isMounted ? [pool] : [],
        disks: disks.map((id) => aDisk(aRecord({ cluster: mark }), { id, imagePath: `${base}/${id}.img` })),
        names: Object.entries(claims).map(([id, name]) => ({ id, namespace: "n", name, className: "" })),
      });
      if (!isMounted) assert.deepEqual(plan.add, []);
      const idle = plan.idle.map(({ path }) => path);
      const removals = new Set(
        [...plan.replaced, ...idle, ...plan.empty].slice(0, Math.max(0, done - plan.add.length)),
      );
      paths = new Set([...paths, ...plan.add.slice(0, done)].filter((path) => !removals.has(path)));
    };
    for (const one of all) {
      const before = new Set(plates().map(({ id }) => id));
      turn(one, one.done);
      const after = new Set(plates().map(({ id }) => id));
      for (const id of before) {
        if (id in one.claims || one.disks.includes(id)) assert.ok(after.has(id), `${id} has lost its plate`);
      }
    }
    const last = { ...all.at(-1)!, isMounted: true };
    for (let rest = 0; rest < 4; rest++) turn(last, 100);
    const shown = plates().filter(({ id }) => id in last.claims).map(({ id, name }) => [id, name]);
    const wanted = Object.entries(last.claims).filter(([id]) => last.disks.includes(id));
    for (const one of wanted) assert.ok(shown.some((found) => found.join() === one.join()), one.join());
    for (const id of last.disks.filter((id) => id in last.claims)) {
      assert.equal(shown.filter(([of]) => of === id).length, 1);
    }
  }),
);
