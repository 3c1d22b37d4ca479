// Every command with the longest values that there can be goes into one exec, and the usual ones with what is read back.
import assert from "node:assert/strict";
import { type AccessMode, formatCapabilities, modeLetters } from "../../volume/model/capabilities.ts";
import { plainLocation, subvolumeLocation, unfinishedPath } from "../../volume/model/layout.ts";
import { maxBasePathBytes } from "../../volume/model/parameters.ts";
import type { ImageLocation } from "../../volume/model/inventory.ts";
import { maxPlateBytes, platesFolder } from "../../volume/model/name_plates.ts";
import type { NewVolume } from "../../volume/ports/store.ts";
import { formatComment, maxCommentBytes, newComment } from "../../volume/model/record.ts";
import { formatSnapshotName, snapshotPart } from "../../volume/model/snapshots/snapshots.ts";
import { type Fragment, onlyIf } from "../console/command.ts";
import { divideIntoExecs, fitsOneExec } from "../console/exchange.ts";
import {
  copyStatement,
  folderStatement,
  poolFolderStatement,
  removeFolderStatement,
  removeImageStatement,
  renameStatement,
  subvolumeStatements,
} from "./mutations.ts";
import { noFile } from "./premises.ts";
import {
  addStatements,
  changeStatements,
  removeStatements,
  unseenExportStatement,
  unseenGrowthStatement,
  unseenRemovalStatements,
} from "../../../tests/support/write_statements.ts";
import {
  allDisksInFullQuery,
  allDisksQuery,
  createBaseQueries,
  createQueries,
  disksQuery,
  filesQuery,
  fileViewQueries,
  resourceQuery,
  sourceViewQueries,
  viewQueries,
} from "./queries.ts";

interface Lengths {
  readonly base: string;
  readonly id: string;
  readonly label: string;
  /** The comment of a volume that is compared. */
  readonly comment: string;
}

const hash = "1a2b3c4d";
const ownId = "pvc-0123456789abcdef0123456789ab";
const legacyId = "pvc-01234567-89ab-cdef-0123-456789abcdef";
const longest: Lengths = {
  base: `/${"p".repeat(7)}/${"b".repeat(maxBasePathBytes - 9)}`,
  id: ownId,
  label: "l".repeat(32),
  comment: "x".repeat(maxCommentBytes),
};
const defaults: Lengths = {
  base: "/storage-pool/metal-csi",
  id: ownId,
  label: "storage-pool-fs",
  comment: "x".repeat(140),
};

/** The comment of a volume that was never published. */
function newRecord(source: string | undefined): string {
  return formatComment(newComment({
    cluster: hash,
    name: "0123456789ab",
    capabilities: formatCapabilities({
      kind: { access: "block" },
      modes: Object.keys(modeLetters) as AccessMode[],
    }),
    parameters: hash,
    epoch: { counter: 0, nonce: hash },
    blankEpoch: 1,
    withdrawnAtSeconds: undefined,
    source,
    holders: [],
  }));
}

function snapshotName(source: string): string {
  return formatSnapshotName({
    id: `snap-${"0".repeat(28)}`,
    source,
    createdAtSeconds: 2 ** 33,
    blank: true,
    encrypted: false,
    cluster: hash,
  });
}

/** Every way to add a volume. */
function additions({ base, id, label, comment }: Lengths): Record<string, NewVolume> {
  const filePrefix = `${id}.${hash}`;
  const plain = plainLocation(`${base}/${filePrefix}.img`);
  const inner = subvolumeLocation(`${base}/${filePrefix}`, label);
  const folder = (label: string | undefined) => ({ makeFolder: { path: base, label } });
  const empty = { id, sizeBytes: 1n << 50n, comment: newRecord(undefined) };
  const filled = { id, sizeBytes: undefined, comment: newRecord(`v:${legacyId}`) };
  const snapshot = `${base}/${snapshotName(legacyId)}`;
  const parent = subvolumeLocation(snapshot, label).subvolume!;
  const subvolume = { ...inner.subvolume!, readOnly: false };
  const copied = { path: unfinishedPath(plain.path, "00ff00ff") };
  return {
    plain: { ...empty, location: plain },
    "plain, in a new folder": { ...empty, location: plain, ...folder(undefined) },
    subvolume: { ...empty, location: inner, subvolume },
    "subvolume, in a new folder": { ...empty, location: inner, subvolume, ...folder(label) },
    clone: { ...filled, location: inner, subvolume: { ...subvolume, parent } },
    "clone, in a new folder": {
      ...filled,
      location: inner,
      subvolume: { ...subvolume, parent },
      ...folder(label),
    },
    "clone of a blank volume": {
      ...filled,
      location: inner,
      subvolume: {
        ...subvolume,
        parent: subvolumeLocation(`${base}/${legacyId}.${hash}`, label).subvolume!,
        guard: { id: legacyId, comment },
      },
    },
    "clone that was made before": { ...filled, location: inner },
    copy: { ...filled, location: plain, copied },
    "copy, in a new folder": { ...filled, location: plain, copied, ...folder(undefined) },
  };
}

/** Every other change, each of which has to go into one exec. */
function changes({ base, id, label, comment }: Lengths): Record<string, Fragment[]> {
  const filePrefix = `${legacyId}.${hash}`;
  const disk = { id: legacyId, comment };
  const plain = plainLocation(`${base}/${filePrefix}.img`);
  const inner = subvolumeLocation(`${base}/${filePrefix}`, label);
  const name = snapshotName(legacyId);
  const plate = `${base}/${platesFolder(hash)}/${"x".repeat(maxPlateBytes)}`;
  const snapshot = plainLocation(`${base}/${name}.img`);
  const part = unfinishedPath(snapshot.path, "00ff00ff");
  const frozen = subvolumeLocation(`${base}/${name}`, label);
  const make = { ...frozen.subvolume!, parent: inner.subvolume!, readOnly: true };
  const snapshotsPart = base + snapshotPart(name.slice(0, 33));
  return {
    "make a name plate": [poolFolderStatement(plate)],
    "remove a name plate": [removeFolderStatement(plate)],
    "remove a plain image": removeStatements(disk, plain),
    "remove a subvolume": removeStatements(disk, inner),
    "remove an unfinished copy": [removeImageStatement(plainLocation(part))],
    "remove a snapshot": [removeImageStatement(frozen)],
    "make a snapshot": subvolumeStatements(make, snapshotsPart),
    "rename a snapshot": [renameStatement(part, snapshot.path, disk)],
    "copy a file": [
      onlyIf([noFile(part)], folderStatement({ path: base, label }), copyStatement(snapshot.path, part)),
    ],
    "grow": changeStatements(id, comment, { comment, sizeBytes: 1n << 50n }),
    "withdraw unread": withdrawal(disk, inner),
  };
}

/** A withdrawal of a volume that is remembered. */
function withdrawal(
  { id, comment }: Pick<Lengths, "id" | "comment">,
  { path }: Pick<ImageLocation, "path">,
): Fragment[] {
  const statements = changeStatements(id, comment, { comment, export: false, onImage: path });
  assert.equal(statements.length, 1);
  return statements;
}

function queries({ base, id }: Lengths): Record<string, Fragment[]> {
  const filePrefix = `${id}.${hash}`;
  const wanted = { id, filePrefix, folder: base };
  const name = snapshotName(legacyId);
  return {
    view: viewQueries(id, filePrefix),
    "view of a volume and a source": sourceViewQueries(wanted, { id: legacyId }),
    "view of a volume and a snapshot": sourceViewQueries(wanted, { part: snapshotPart(name.slice(0, 33)) }),
    "view of an legacy driver's volume": viewQueries(legacyId, `${legacyId}.${hash}`),
    "view of a volume and its copy": viewQueries(
      legacyId,
      `${legacyId}.${hash}`,
      `${base}/${name}.img.00ff00ff.part`,
    ),
    "view of a snapshot and its copy": viewQueries(
      name.slice(0, 33),
      snapshotPart(name.slice(0, 33)),
      `${base}/${filePrefix}.img.00ff00ff.part`,
    ),
    "create view": createQueries(wanted),
    "create view without volume": createQueries(undefined),
    "rest of a create view": createBaseQueries(wanted),
    inventory: [allDisksQuery(), resourceQuery],
    "files of a snapshot": fileViewQueries(snapshotPart(name.slice(0, 33))),
    "files of a path": fileViewQueries(`${base}/${name}.img.00ff00ff.part`),
  };
}

for (const [name, asked] of Object.entries(queries(longest))) {
  Deno.test(`the longest ${name} fits one exec`, () => assert.ok(fitsOneExec([], asked)));
}

for (const [name, statements] of Object.entries(changes(longest))) {
  Deno.test(`the longest command to ${name} fits one exec, with a sign of its end`, () => {
    assert.ok(fitsOneExec(statements, []), String(bytes(statements)));
  });
}

for (const [name, volume] of Object.entries(additions(longest))) {
  Deno.test(`each part of the longest addition (${name}) fits an exec, with a sign of its end`, () => {
    for (const part of divideIntoExecs(addStatements(volume))) {
      assert.ok(fitsOneExec(part, []), String(bytes(part)));
    }
  });
}

Deno.test("each part of the longest snapshot of a blank volume fits an exec, and the usual one reads its files back in the same", () => {
  const statementsFor = ({ base, id, label, comment }: Lengths, source: string) => {
    const parent = subvolumeLocation(`${base}/${source}.${hash}`, label).subvolume!;
    const name = snapshotName(source);
    const { subvolume } = subvolumeLocation(`${base}/${name}`, label);
    const part = base + snapshotPart(name.slice(0, 33));
    const made = { ...subvolume!, parent, readOnly: true, guard: { id, comment } };
    return { statements: subvolumeStatements(made, part), part };
  };
  for (const part of divideIntoExecs(statementsFor(longest, legacyId).statements)) {
    assert.ok(fitsOneExec(part, []), String(bytes(part)));
  }
  const { statements, part } = statementsFor({ ...defaults, comment: newRecord(undefined) }, ownId);
  assert.ok(fitsOneExec(statements, [filesQuery(part)]), String(bytes(statements)));
});

const poolLabel = `${longest.base.split("/")[1]}-fs`;
const withRoom: readonly (readonly [what: string, Lengths, query: Fragment, ways: readonly string[]])[] = [
  ["longest addition", longest, allDisksQuery(), ["plain"]],
  ["longest addition", longest, allDisksInFullQuery, ["subvolume"]],
  ["longest addition with a usual label", { ...longest, label: poolLabel }, allDisksInFullQuery, [
    "plain, in a new folder",
    "subvolume, in a new folder",
    "clone that was made before",
  ]],
  ["usual addition", defaults, allDisksQuery(), ["plain", "subvolume", "subvolume, in a new folder"]],
];

for (const [what, lengths, query, ways] of withRoom) {
  for (const way of ways) {
    Deno.test(`the ${what} (${way}) reads everything back in the same exec`, () => {
      const statements = addStatements(additions(lengths)[way]!);
      assert.ok(fitsOneExec(statements, [query]), String(bytes(statements)));
    });
  }
}

Deno.test("default changes read everything back in the same exec", () => {
  const { id, comment, base, label } = defaults;
  const filePrefix = `${id}.${hash}`;
  const locations: ImageLocation[] = [
    plainLocation(`${base}/${filePrefix}.img`),
    subvolumeLocation(`${base}/${filePrefix}`, label),
  ];
  for (const location of locations) {
    const statements = removeStatements({ id, comment }, location);
    assert.ok(fitsOneExec(statements, [disksQuery(id), filesQuery(filePrefix)]), `remove ${location.path}`);
    // The comment of a volume that was published a dozen times and never copied.
    const known = unseenRemovalStatements({ id, comment: "x".repeat(90) }, location, filePrefix);
    assert.ok(fitsOneExec(known, [disksQuery(id)]), `remove unread ${location.path}`);
    const off = withdrawal({ id, comment: "x".repeat(170) }, location);
    assert.ok(fitsOneExec(off, [disksQuery(id)]), `withdraw unread ${location.path}`);
  }
  const on = { nqn: `nqn.2000-02.com.mikrotik:${id}:12-ab12cd34`, port: 4420 };
  const longer = "x".repeat(200);
  const published = changeStatements(id, longer, { comment: longer, export: on });
  assert.ok(fitsOneExec(published, viewQueries(id, undefined)), "publish");
  // The comments of a volume that was published a dozen times and never copied, to a node of a long name.
  const change = { comment: "x".repeat(150), export: on, neverMounted: true } as const;
  for (const { path: imagePath } of locations) {
    const unread = unseenExportStatement({ id, comment: "x".repeat(90), imagePath }, change, filePrefix);
    assert.ok(fitsOneExec([unread], [disksQuery(id)]), `publish unread ${imagePath}`);
    const known = { id, comment, imagePath, sizeBytes: 1n << 50n, exported: false };
    const grown = unseenGrowthStatement(known, { comment, sizeBytes: 1n << 51n });
    assert.ok(fitsOneExec([grown], [disksQuery(id)]), `grow unread ${imagePath}`);
  }
  const part = base + snapshotPart(snapshotName(ownId).slice(0, 33));
  assert.ok(fitsOneExec(changes(defaults)["make a snapshot"]!, [filesQuery(part)]), "make a snapshot");
  assert.ok(fitsOneExec(changes(defaults)["remove a snapshot"]!, fileViewQueries(part)), "remove a snapshot");
});

function bytes(statements: readonly Fragment[]): number {
  return statements.map(({ text }) => text).join("; ").length;
}
