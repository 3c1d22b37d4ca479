import assert from "node:assert/strict";
import { aCreate, gibibyte, testParameters, testSettings } from "../../../tests/fakes/controller_deps.ts";
import { SeededRandom } from "../../../tests/fakes/random.ts";
import {
  aDisk,
  aHolder,
  aPool,
  aRecord,
  aVolume,
  plainImage,
  subvolumeImage,
  testBase,
  testCluster,
} from "../../../tests/fakes/records.ts";
import { refusal } from "../../../tests/fakes/refusal.ts";
import type { FilesystemType } from "../model/capabilities.ts";
import type { SubvolumeNames } from "../model/layout.ts";
import { parametersDigest, parseParameters } from "../model/parameters.ts";
import type { CreateView, StoredVolume } from "../model/inventory.ts";
import {
  assertNoImage,
  type CreateRequest,
  findCreated,
  isUnfinishedClone,
  missingFolder,
  planVolume,
  slotOf,
} from "./provision.ts";
import type { VolumeRecord } from "../model/record.ts";
import type { SourceRef } from "../model/sources.ts";

const request = aCreate("pvc-0f8fad5b-d9cb-469f-a165-70867728950e");
const plan = planned(request);
const source: SourceRef = { kind: "volume", id: "pvc-2" };
const locations = { file: plainImage(plan.id), subvolume: subvolumeImage(plan.id) };

function planned(wanted: CreateRequest) {
  return planVolume(wanted, testCluster, new SeededRandom());
}

function view(over: Partial<CreateView> = {}): CreateView {
  return { volumes: [], pools: [], upMs: 1, foreign: undefined, files: [], ...over };
}

/** What an earlier attempt of the request has left on the router. */
function existing(record: Partial<VolumeRecord> = {}, disk: Partial<StoredVolume> = {}): CreateView {
  const made = aDisk({ ...plan.record, ...record }, {
    id: plan.id,
    imagePath: locations.subvolume,
    exported: false,
    ...disk,
  });
  return view({ volumes: [made] });
}

function find(seen: CreateView, over: Partial<CreateRequest> = {}) {
  const wanted = { ...request, ...over };
  return findCreated(slotOf(seen, planned(wanted)), planned(wanted), wanted);
}

Deno.test("planVolume() describes a volume that was never published", () => {
  assert.equal(plan.id, "pvc-0f8fad5bd9cb469fa16570867728");
  assert.equal(plan.filePrefix, `${plan.id}.${testCluster}`);
  assert.equal(plan.basePath, testBase);
  const { cluster, blankEpoch, epoch, holders, source } = plan.record;
  assert.equal(cluster, testCluster);
  assert.deepEqual([blankEpoch, epoch?.counter, holders, source], [1, 0, [], undefined]);
});

Deno.test("planVolume() is the same for every attempt of one request", () => {
  assert.deepEqual(planned({ ...request }), plan);
});

Deno.test("planVolume() records the source", () => {
  assert.equal(planned({ ...request, source }).record.source, "v:pvc-2");
});

Deno.test("planVolume() refuses impossible requests before anything is read", () => {
  const tooSmall = { requiredBytes: 0n, limitBytes: 1n };
  assert.throws(() => planned({ ...request, range: tooSmall }), refusal("out-of-range"));
  planned({ ...request, range: tooSmall, source });
  const parameters = { ...testParameters, node: { mkfsOptions: "-b 4096; reboot" } };
  assert.throws(() => planned({ ...request, parameters }), refusal("invalid"));
  assert.throws(() => planned({ ...request, name: "" }), refusal("invalid"));
});

Deno.test("planVolume() refuses a size at which a node could not make the file system", () => {
  const mebibyte = 1n << 20n;
  const sized = (limit: bigint, filesystem: FilesystemType | undefined, encrypted = false) => () => {
    const kind = filesystem === undefined
      ? { access: "block" as const }
      : { access: "mount" as const, filesystem };
    const capabilities = { ...request.capabilities, kind, encrypted };
    return planned({ ...request, range: { requiredBytes: 1n, limitBytes: limit * mebibyte }, capabilities });
  };
  const tooSmall = refusal("out-of-range", /xfs needs 300 MiB/);
  assert.throws(sized(299n, "xfs"), tooSmall);
  assert.throws(sized(315n, "xfs", true), tooSmall);
  for (
    const fits of [sized(300n, "xfs"), sized(316n, "xfs", true), sized(299n, "ext4"), sized(1n, undefined)]
  ) {
    assert.doesNotThrow(fits);
  }
});

Deno.test("findCreated() finds what an earlier attempt made, also when it is in use or has grown", () => {
  const holders = [aHolder("a")];
  const views = [
    existing(),
    existing({}, { imagePath: locations.file }),
    existing({}, { sizeBytes: 5n * gibibyte }),
    existing({ epoch: { counter: 1, nonce: "00000000" }, holders }),
    existing({ growths: 2, blankEpoch: 0 }),
  ];
  for (const seen of views) assert.equal(find(seen)?.stored, seen.volumes[0]);
});

Deno.test("findCreated() refuses a different volume of the same name", () => {
  const block = { kind: { access: "block" }, modes: ["single-node-writer"] } as const;
  const readers = { kind: request.capabilities.kind, modes: ["multi-node-reader-only"] } as const;
  const twice = { range: { requiredBytes: 2n * gibibyte, limitBytes: 0n } };
  const cases: [string, CreateView, Partial<CreateRequest>, RegExp][] = [
    ["smaller", existing(), twice, /size is 1073741824/],
    [
      "larger than the limit",
      existing({}, { sizeBytes: 3n * gibibyte }),
      { range: { requiredBytes: 0n, limitBytes: 2n * gibibyte } },
      /size is/,
    ],
    ["another kind", existing(), { capabilities: block }, /made for ext4\/w, not block\/w/],
    ["other modes", existing(), { capabilities: readers }, /not ext4\/n/],
    ["other parameters", existing(), { rawParameters: { fsckMode: "off" } }, /other parameters/],
    ["another folder", existing({}, { imagePath: `/pool/${plan.filePrefix}.img` }), {}, /other parameters/],
    ["another image", existing({}, { imagePath: "/pool/csi/x.img" }), {}, /other parameters/],
    ["another name in the same slot", existing({ name: "0".repeat(12) }), {}, /another name/],
    ["made from a source", existing({ source: "v:pvc-2" }), {}, /made from v:pvc-2, not nothing/],
    ["made from nothing", existing(), { source }, /made from nothing, not v:pvc-2/],
    [
      "made from another source",
      existing({ source: "v:pvc-3" }),
      { source },
      /made from v:pvc-3, not v:pvc-2/,
    ],
    [
      "a small clone that was published",
      existing({ source: "v:pvc-2", epoch: { counter: 1, nonce: "00000000" } }),
      { ...twice, source },
      /size is 1073741824/,
    ],
    [
      "a clone beyond the limit",
      existing({ source: "v:pvc-2" }, { sizeBytes: 3n * gibibyte }),
      { range: { requiredBytes: gibibyte, limitBytes: 2n * gibibyte }, source },
      /size is/,
    ],
  ];
  for (const [name, seen, over, text] of cases) {
    assert.throws(() => find(seen, over), refusal("exists-incompatible", text), name);
  }
});

Deno.test("isUnfinishedClone() holds only for clones that are too small and were never published", () => {
  const unpublished = { counter: 0, nonce: "00000000" };
  const range = { requiredBytes: gibibyte + 1n, limitBytes: 0n };
  const cases: [boolean, Partial<VolumeRecord>, Partial<StoredVolume>][] = [
    [true, { source: "v:pvc-2", epoch: unpublished }, {}],
    [false, { epoch: unpublished }, {}],
    [false, { source: "v:pvc-2", epoch: { counter: 1, nonce: "00000000" } }, {}],
    [false, { source: "v:pvc-2", epoch: undefined }, {}],
    [false, { source: "v:pvc-2", epoch: unpublished }, { sizeBytes: gibibyte + 1n }],
  ];
  for (const [unfinished, record, disk] of cases) {
    assert.equal(isUnfinishedClone(aVolume(record, disk), range), unfinished, JSON.stringify(record));
  }
});

Deno.test("findCreated() refuses an image that another disk uses", () => {
  for (const imagePath of Object.values(locations)) {
    const volumes = [aDisk(aRecord(), { id: "disk1", imagePath })];
    assert.throws(() => find(view({ volumes })), refusal("precondition", /disk=disk1/));
  }
});

Deno.test("findCreated() compares the parameters as given, not their effect", () => {
  const seen = existing({ parameters: parametersDigest({ nvmePort: "4420" }) });
  assert.throws(() => find(seen), refusal("exists-incompatible"));
  assert.ok(find(seen, { rawParameters: { nvmePort: "4420" } }));
});

Deno.test("assertNoImage() refuses an image without a disk, in a file and in a subvolume", () => {
  for (const path of Object.values(locations)) {
    const files = [{ path, sizeBytes: 7n, directory: false }];
    assert.throws(
      () => assertNoImage(view({ files }), plan),
      refusal(
        "precondition",
        /bytes=7; it may hold data: .*; if nothing of it is needed, `rds-csi audit --delete \//,
      ),
    );
  }
});

Deno.test("assertNoImage() accepts files that are no image of the volume in its folder", () => {
  const files = [
    { path: testBase, sizeBytes: 0n, directory: true },
    { path: `${testBase}/${plan.filePrefix}`, sizeBytes: 0n, directory: true },
    { path: locations.file, sizeBytes: 0n, directory: true },
    { path: `${locations.file}.0123abcd.part`, sizeBytes: 7n, directory: false },
    { path: `/pool/other/${plan.filePrefix}.img`, sizeBytes: 7n, directory: false },
    { path: `${testBase}/${plan.id}.ffffffff.img`, sizeBytes: 7n, directory: false },
  ];
  assertNoImage(view({ files }), plan);
});

const pool = aPool();

Deno.test("missingFolder() names the folder of the pool that does not exist yet", () => {
  const folder = { path: testBase, sizeBytes: 0n, directory: true };
  const label = "pool-fs";
  const missing = { makeFolder: { path: testBase, label } };
  assert.deepEqual(missingFolder(view(), testBase, pool, "nested"), missing);
  assert.deepEqual(
    missingFolder(view({ files: [{ ...folder, directory: false }] }), testBase, pool, "nested"),
    missing,
  );
  assert.deepEqual(missingFolder(view(), testBase, { ...pool, subvolumeLabel: undefined }, "nested"), {
    makeFolder: { path: testBase, label: undefined },
  });
  assert.deepEqual(missingFolder(view({ files: [folder] }), testBase, pool, "nested"), {});
  const { basePath } = parseParameters({}, { ...testSettings, basePaths: ["/pool"] });
  assert.deepEqual(missingFolder(view(), basePath, pool, "nested"), {});
});

const folders: readonly (readonly [folder: string, names: SubvolumeNames, label: string | undefined])[] = [
  ["/pool/csi", "nested", "pool-fs"],
  ["/pool/csi", "flat", "pool-fs"],
  ["/pool/csi/deeper", "nested", "pool-fs"],
  ["/pool/csi/deeper", "flat", undefined],
];

for (const [path, names, label] of folders) {
  Deno.test(`missingFolder() makes ${path} as ${label ?? "a plain folder"} where names are ${names}`, () => {
    assert.deepEqual(missingFolder(view(), path, pool, names), { makeFolder: { path, label } });
  });
}
