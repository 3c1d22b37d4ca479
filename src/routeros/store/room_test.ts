// Every command with the longest values that there can be goes into one exec, and the usual ones with what is read back.
import assert from "node:assert/strict";
import { type AccessMode, formatCapabilities, modeLetters } from "../../volume/model/capabilities.ts";
import { hostIdentityOf } from "../../volume/model/host_identity.ts";
import { plainPlace, subvolumePlace, unfinishedPath } from "../../volume/model/layout.ts";
import { maxBasePathBytes } from "../../volume/model/parameters.ts";
import type { ImagePlace } from "../../volume/model/inventory.ts";
import type { NewVolume } from "../../volume/ports/store.ts";
import { formatComment, maxCommentBytes, newComment } from "../../volume/model/record.ts";
import { formatSnapshotName, snapshotPart } from "../../volume/model/snapshots.ts";
import { type Fragment, onlyIf } from "../console/command.ts";
import { divideIntoExecs, fitsOneExec } from "../console/exchange.ts";
import {
  addStatements,
  changeStatements,
  copyStatement,
  folderStatement,
  noFile,
  removeImageStatement,
  removeStatements,
  renameStatement,
  subvolumeStatement,
} from "./mutations.ts";
import {
  allDisksInFullQuery,
  allDisksQuery,
  createBaseQueries,
  createQueries,
  disksQuery,
  filesQuery,
  fileViewQueries,
  resourceQuery,
  subvolumeQuery,
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
const earlierId = "pvc-01234567-89ab-cdef-0123-456789abcdef";
const longest: Lengths = {
  base: `/${"p".repeat(7)}/${"b".repeat(maxBasePathBytes - 9)}`,
  id: ownId,
  label: "l".repeat(32),
  comment: "x".repeat(maxCommentBytes),
};
const usual: Lengths = {
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
    cluster: hash,
  });
}

/** Every way to add a volume. */
function additions({ base, id, label, comment }: Lengths): Record<string, NewVolume> {
  const stem = `${id}.${hash}`;
  const plain = plainPlace(`${base}/${stem}.img`);
  const inner = subvolumePlace(`${base}/${stem}`, label);
  const folder = (label: string | undefined) => ({ makeFolder: { path: base, label } });
  const empty = { id, sizeBytes: 1n << 50n, comment: newRecord(undefined) };
  const filled = { id, sizeBytes: undefined, comment: newRecord(`v:${earlierId}`) };
  const snapshot = `${base}/${snapshotName(earlierId)}`;
  const parent = subvolumePlace(snapshot, label).subvolume!;
  const subvolume = { ...inner.subvolume!, readOnly: false };
  const copied = { path: unfinishedPath(plain.path, "00ff00ff") };
  return {
    plain: { ...empty, place: plain },
    "plain, in a new folder": { ...empty, place: plain, ...folder(undefined) },
    subvolume: { ...empty, place: inner, subvolume },
    "subvolume, in a new folder": { ...empty, place: inner, subvolume, ...folder(label) },
    clone: { ...filled, place: inner, subvolume: { ...subvolume, parent } },
    "clone, in a new folder": {
      ...filled,
      place: inner,
      subvolume: { ...subvolume, parent },
      ...folder(label),
    },
    "clone of a blank volume": {
      ...filled,
      place: inner,
      subvolume: {
        ...subvolume,
        parent: subvolumePlace(`${base}/${earlierId}.${hash}`, label).subvolume!,
        guard: { id: earlierId, comment },
      },
    },
    "clone that was made before": { ...filled, place: inner },
    copy: { ...filled, place: plain, copied },
    "copy, in a new folder": { ...filled, place: plain, copied, ...folder(undefined) },
  };
}

/** Every other change, each of which has to go into one exec. */
function changes({ base, id, label, comment }: Lengths): Record<string, Fragment[]> {
  const stem = `${earlierId}.${hash}`;
  const disk = { id: earlierId, comment };
  const plain = plainPlace(`${base}/${stem}.img`);
  const inner = subvolumePlace(`${base}/${stem}`, label);
  const name = snapshotName(earlierId);
  const snapshot = plainPlace(`${base}/${name}.img`);
  const part = unfinishedPath(snapshot.path, "00ff00ff");
  const frozen = subvolumePlace(`${base}/${name}`, label);
  const make = { ...frozen.subvolume!, parent: inner.subvolume!, readOnly: true };
  const snapshotsPart = base + snapshotPart(name.slice(0, 33));
  return {
    "remove a plain image": removeStatements(disk, plain),
    "remove a subvolume": removeStatements(disk, inner),
    "remove an unfinished copy": [removeImageStatement(plainPlace(part))],
    "remove a snapshot": [removeImageStatement(frozen)],
    "make a snapshot": [subvolumeStatement(make, snapshotsPart)],
    "make a snapshot of a blank volume": [subvolumeStatement({ ...make, guard: disk }, snapshotsPart)],
    "rename a snapshot": [renameStatement(part, snapshot.path, disk)],
    "copy a file": [
      onlyIf([noFile(part)], folderStatement({ path: base, label }), copyStatement(snapshot.path, part)),
    ],
    "bounce an export": changeStatements(id, comment, {
      comment,
      allowedHosts: [hostIdentityOf("n").hostNqn],
      bounce: true,
    }),
    "grow": changeStatements(id, comment, { comment, sizeBytes: 1n << 50n }),
  };
}

function queries({ base, id, label }: Lengths): Record<string, Fragment[]> {
  const stem = `${id}.${hash}`;
  const wanted = { id, stem, folder: base };
  const name = snapshotName(earlierId);
  return {
    view: viewQueries(id, stem),
    "view of an earlier driver's volume": viewQueries(earlierId, `${earlierId}.${hash}`),
    "create view": createQueries(true, wanted),
    "create view without volume": createQueries(true, undefined),
    "rest of a create view": createBaseQueries(wanted),
    inventory: [allDisksQuery(true), resourceQuery],
    "files of a snapshot": fileViewQueries(snapshotPart(name.slice(0, 33))),
    "files of a path": fileViewQueries(`${base}/${name}.img.00ff00ff.part`),
    subvolume: [subvolumeQuery(subvolumePlace(`${base}/${name}`, label).subvolume!)],
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

const poolLabel = `${longest.base.split("/")[1]}-fs`;
const withRoom: readonly (readonly [what: string, Lengths, query: Fragment, ways: readonly string[]])[] = [
  ["longest addition", longest, allDisksQuery(true), ["plain", "subvolume"]],
  ["longest addition with a usual label", { ...longest, label: poolLabel }, allDisksInFullQuery, [
    "plain, in a new folder",
    "subvolume, in a new folder",
    "clone that was made before",
  ]],
  ["usual addition", usual, allDisksQuery(true), ["plain", "subvolume", "subvolume, in a new folder"]],
];

for (const [what, lengths, query, ways] of withRoom) {
  for (const way of ways) {
    Deno.test(`the ${what} (${way}) reads everything back in the same exec`, () => {
      const statements = addStatements(additions(lengths)[way]!);
      assert.ok(fitsOneExec(statements, [query]), String(bytes(statements)));
    });
  }
}

Deno.test("usual changes read everything back in the same exec", () => {
  const { id, comment, base, label } = usual;
  const stem = `${id}.${hash}`;
  const places: ImagePlace[] = [
    plainPlace(`${base}/${stem}.img`),
    subvolumePlace(`${base}/${stem}`, label),
  ];
  for (const place of places) {
    const statements = removeStatements({ id, comment }, place);
    assert.ok(fitsOneExec(statements, [disksQuery(id), filesQuery(stem)]), `remove ${place.path}`);
  }
  const on = { nqn: `nqn.2000-02.com.mikrotik:${id}:12-ab12cd34`, port: 4420 };
  const longer = "x".repeat(200);
  const published = changeStatements(id, longer, { comment: longer, export: on });
  assert.ok(fitsOneExec(published, viewQueries(id, undefined)), "publish");
  for (const name of ["make a snapshot", "remove a snapshot"]) {
    const part = base + snapshotPart(snapshotName(ownId).slice(0, 33));
    assert.ok(fitsOneExec(changes(usual)[name]!, fileViewQueries(part)), name);
  }
});

function bytes(statements: readonly Fragment[]): number {
  return statements.map(({ text }) => text).join("; ").length;
}
