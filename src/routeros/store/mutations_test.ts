import assert from "node:assert/strict";
import { digest } from "../../volume/model/digest.ts";
import { plainLocation, subvolumeLocation } from "../../volume/model/layout.ts";
import { maxImagePathBytes } from "../../volume/rules/import.ts";
import type { NewVolume } from "../../volume/ports/store.ts";
import { fitsOneExec } from "../console/exchange.ts";
import { copyStatement, removeImageStatement, renameStatement, subvolumeStatements } from "./mutations.ts";
import {
  addStatements,
  changeStatements,
  removeStatements,
  unseenExportStatement,
  unseenGrowthStatement,
  unseenRemovalStatements,
} from "../../../tests/support/write_statements.ts";
import { createQueries, divideIntoQuestions, namedFilesViewQueries, viewQueries } from "./queries.ts";

function lines(statements: readonly { readonly text: string }[]): string[] {
  return statements.map((statement) => statement.text);
}

const plain = plainLocation("/pool/csi/s1.1a2b3c4d.img");
const inSubvolume = subvolumeLocation("/pool/csi/s1.1a2b3c4d", "pool-fs");
const added: NewVolume = { id: "s1", location: plain, sizeBytes: 1073741824n, comment: "c$" };
const settings = `mount-filesystem="no" nvme-tcp-export="no" comment="c\\$"`;
const noDisk = `[:len [/disk find where slot="s1" or file-path~"/s1[.]1a2b3c4d[.]img"]]=0`;
/** What asks whether the label is the pool's alone, before and after the statement. */
const ifOwnLabel = `:if ([:len [/disk find where type="file" and fs-label="pool-fs"]]>0) do={` +
  `:error "a volume has this fs-label"} else={`;
const image = `name="pool/csi/s1.1a2b3c4d.img"`;
const noDiskInside = `[:len [/disk find where slot="s1" or file-path~"/s1[.]1a2b3c4d/"]]=0`;

Deno.test("addStatements() adds a disk that nobody mounts or sees, where neither disk nor image is", () => {
  assert.deepEqual(lines(addStatements(added)), [
    `:if ((${noDisk}) and ([:len [/file find where ${image}]]=0)) do={` +
    `/disk add type="file" slot="s1" file-path="/pool/csi/s1.1a2b3c4d.img" file-size="1073741824" ${settings}}`,
  ]);
});

Deno.test("addStatements() makes the folder first, unless another volume has just made it", () => {
  const free = `:if ([:len [/file find where name="pool/csi"]]=0)`;
  const makeFolder = { path: "/pool/csi", label: undefined };
  assert.equal(
    lines(addStatements({ ...added, makeFolder }))[0],
    `${free} do={/file add type="directory" name="pool/csi"}`,
  );
  assert.equal(
    lines(addStatements({ ...added, makeFolder: { ...makeFolder, label: "pool-fs" } }))[0],
    `${free} do={/disk/btrfs/subvolume/add fs="pool-fs" name="csi"}`,
  );
});

Deno.test("addStatements() makes the image's subvolume and a new image in it", () => {
  const subvolume = { ...inSubvolume.subvolume!, readOnly: false };
  assert.deepEqual(lines(addStatements({ ...added, location: inSubvolume, subvolume })), [
    `${ifOwnLabel}/disk/btrfs/subvolume/add fs="pool-fs" name="csi/s1.1a2b3c4d"}`,
    `:if ([:len [/disk find where slot="s1" or file-path~"/s1[.]1a2b3c4d/"]]=0) do={` +
    `/disk add type="file" slot="s1" file-path="/pool/csi/s1.1a2b3c4d/disk.img" file-size="1073741824" ${settings}}`,
  ]);
});

Deno.test("addStatements() leaves the label to the look before where a folder is made, as there is no room to ask", () => {
  const subvolume = { ...inSubvolume.subvolume!, readOnly: false };
  const makeFolder = { path: "/pool/csi", label: "pool-fs" };
  const [, make] = lines(addStatements({ ...added, location: inSubvolume, subvolume, makeFolder }));
  assert.equal(make, `/disk/btrfs/subvolume/add fs="pool-fs" name="csi/s1.1a2b3c4d"`);
});

const cloneOfSnapshot = (comment: string): NewVolume => {
  const parent = { label: "pool-fs", path: "csi/snap-1.s0.x.n.1a2b3c4d" };
  const subvolume = { ...inSubvolume.subvolume!, parent, readOnly: false };
  return { ...added, comment, sizeBytes: undefined, location: inSubvolume, subvolume };
};
const oneParent =
  `[:len [/disk/btrfs/subvolume/find where fs="pool-fs" and name="snap-1.s0.x.n.1a2b3c4d"]]=1`;
const ownLabel = `[:len [/disk find where type="file" and fs-label="pool-fs"]]=0`;
const makeClone =
  `/disk/btrfs/subvolume/add fs="pool-fs" name="csi/s1.1a2b3c4d" parent="snap-1.s0.x.n.1a2b3c4d"`;
const addClone = `/disk add type="file" slot="s1" file-path="/pool/csi/s1.1a2b3c4d/disk.img"`;

Deno.test("addStatements() makes a clone and its disk in one statement, naming its parent by the last segment", () => {
  assert.deepEqual(lines(addStatements(cloneOfSnapshot("c$"))), [
    `:if ((${noDiskInside}) and (${ownLabel}) and (${oneParent})) do={${makeClone}; ${addClone} ${settings}}`,
  ]);
});

Deno.test("addStatements() marks a clone as never used until it has its disk, where both do not fit one command", () => {
  const comment = "c".repeat(600);
  const mark = `name="pool/csi/s1.1a2b3c4d/no-disk-${digest(comment, 8)}"`;
  assert.deepEqual(lines(addStatements(cloneOfSnapshot(comment))), [
    `:if ((${ownLabel}) and (${oneParent})) do={${makeClone}; /file add type="directory" ${mark}}`,
    `:if ((${noDiskInside}) and ([:len [/file find where ${mark}]]=1)) do={/file remove [find where ${mark}]; ` +
    `${addClone} mount-filesystem="no" nvme-tcp-export="no" comment="${comment}"}`,
  ]);
});

Deno.test("addStatements() adopts an image that is there, and nothing where none is", () => {
  assert.deepEqual(lines(addStatements({ ...added, sizeBytes: undefined })), [
    `:if ((${noDisk}) and ([:len [/file find where ${image}]]=1)) do={` +
    `/disk add type="file" slot="s1" file-path="/pool/csi/s1.1a2b3c4d.img" ${settings}}`,
  ]);
});

Deno.test("addStatements() renames a copy and adds its disk in one statement, and adopts nothing else", () => {
  const copied = { path: "/pool/csi/s1.1a2b3c4d.img.00ff00ff.part" };
  const [statement, ...others] = addStatements({ ...added, sizeBytes: undefined, copied });
  assert.equal(
    statement!.text,
    `:if ((${noDisk}) and ([:len [/file find where ${image}]]=0)) do={` +
      `/file set [find where name="pool/csi/s1.1a2b3c4d.img.00ff00ff.part"] ${image}; ` +
      `/disk add type="file" slot="s1" file-path="/pool/csi/s1.1a2b3c4d.img" ${settings}}`,
  );
  assert.deepEqual(others, []);
});

Deno.test("changeStatements() sets everything in one statement that compares the comment", () => {
  const own = `/disk set [find where slot="s1" and comment="old"]`;
  const on = { nqn: "nqn.2000-02.com.mikrotik:s1:1-ab", port: 4420 };
  const exported = `comment="new" nvme-tcp-export="yes" nvme-tcp-server-port="4420"`;
  assert.deepEqual(lines(changeStatements("s1", "old", { comment: "new", export: on })), [
    `${own} ${exported} nvme-tcp-server-nqn="${on.nqn}"`,
  ]);
  assert.deepEqual(lines(changeStatements("s1", "old", { comment: "new", export: false })), [
    `${own} nvme-tcp-export="no" comment="new"`,
  ]);
  assert.deepEqual(lines(changeStatements("s1", "old", { comment: "new", sizeBytes: 2147483648n })), [
    `${own} file-size="2147483648" comment="new"`,
  ]);
});

Deno.test("changeStatements() changes a disk only while it is on its image, and nothing where there is no room to ask", () => {
  const onImage = "/pool/csi/s1.0a0b0c0d/disk.img";
  assert.deepEqual(lines(changeStatements("s1", "old", { comment: "new", export: false, onImage })), [
    `/disk set [find where slot="s1" and comment="old" and ` +
    `file-path~"(^|/)pool/csi/s1[.]0a0b0c0d/disk[.]img"] nvme-tcp-export="no" comment="new"`,
  ]);
  const comment = "c".repeat(430);
  assert.equal(changeStatements("s1", comment, { comment, export: false }).length, 1);
  assert.deepEqual(changeStatements("s1", comment, { comment, export: false, onImage }), []);
});

Deno.test("changeStatements() has room to keep a disk unmounted beside the longest record", () => {
  const [id, comment] = ["s".repeat(40), "c".repeat(255)];
  const on = { nqn: `nqn.2000-02.com.mikrotik:${id}:4294967295-0123abcd`, port: 65535 };
  const statements = changeStatements(id, comment, { comment, export: on, neverMounted: true });
  assert.match(statements[0]!.text, / mount-filesystem="no" comment="c+" nvme-tcp-export="yes" /);
  assert.ok(fitsOneExec(statements, []));
});

Deno.test("unseenExportStatement() lets the router look at what nobody has looked at", () => {
  const on = { nqn: "nqn.2000-02.com.mikrotik:s1:1-ab", port: 4420 };
  const known = { id: "s1", comment: "old", imagePath: plain.path };
  const statement = unseenExportStatement(known, { comment: "new", export: on }, "s1.1a2b3c4d");
  assert.equal(
    statement.text,
    `:if (([:len [/disk find where file-path~"s1[.]1a2b3c4d"]]=1) and ` +
      `([:len [/file find where ${image}]]=1) and ([:len [/disk find where mounted and mount-point="pool"]]=1)) do={` +
      `/disk set [find where slot="s1" and comment="old" and !mounted and !nvme-tcp-export] ` +
      `comment="new" nvme-tcp-export="yes" nvme-tcp-server-port="4420" nvme-tcp-server-nqn="${on.nqn}"}`,
  );
});

Deno.test("unseenGrowthStatement() lets the router look whether the disk and its image are as they were", () => {
  const known = { id: "s1", comment: "old", imagePath: plain.path, sizeBytes: 5n };
  const grown = { comment: "new", sizeBytes: 7n };
  for (const [exported, flag] of [[true, "nvme-tcp-export"], [false, "!nvme-tcp-export"]] as const) {
    assert.equal(
      unseenGrowthStatement({ ...known, exported }, grown).text,
      `:if (([:len [/file find where ${image} and size="5"]]=1) and ` +
        `([:len [/disk find where mounted and mount-point="pool"]]=1)) do={` +
        `/disk set [find where slot="s1" and file-path="/pool/csi/s1.1a2b3c4d.img" and size="5" and ` +
        `comment="old" and ${flag}] file-size="7" comment="new"}`,
    );
  }
});

Deno.test("changeStatements() grows a disk while its export is off, and each statement goes by the comment, which changes last", () => {
  const own = `[find where slot="s1" and comment="old"]`;
  assert.deepEqual(
    lines(changeStatements("s1", "old", { comment: "new", sizeBytes: 2n << 30n, bounce: true })),
    [
      `/disk set ${own} nvme-tcp-export="no" mount-filesystem="no" file-size="2147483648"`,
      `/disk set ${own} nvme-tcp-export="yes" comment="new"`,
    ],
  );
});

Deno.test("changeStatements() is empty when nothing changes", () => {
  assert.deepEqual(changeStatements("s1", "old", {}), []);
});

Deno.test("removeStatements() lets the router look for users of the image before it goes", () => {
  const disk = `/disk remove [find where slot="s1" and comment="old"]`;
  const guard = { id: "s1", comment: "old" };
  assert.deepEqual(lines(removeStatements(guard, plain)), [
    disk,
    `:if (${noDisk}) do={/file remove [find where ${image}]}`,
  ]);
  assert.deepEqual(lines(removeStatements(guard, inSubvolume)), [
    disk,
    `:if ([:len [/disk find where slot="s1" or file-path~"/s1[.]1a2b3c4d/"]]=0) do={` +
    `${ifOwnLabel}/disk/btrfs/subvolume/remove [find where fs="pool-fs" and fullname="csi/s1.1a2b3c4d"]}}`,
  ]);
});

Deno.test("unseenRemovalStatements() lets the router look at what nobody has looked at, and say that files are left", () => {
  const guard = { id: "s1", comment: "old" };
  const onlyOne = `[:len [/disk find where file-path~"s1[.]"]]=1`;
  const mounted = `[/disk find where mounted and mount-point="pool"`;
  const disk = `/disk remove [find where slot="s1" and file-path~"s1[.]1a2b3c4d" and comment="old" and ` +
    "!nvme-tcp-export]";
  const left = `:if ([:len [/file find where name~"s1[.]"]]>0) do={:error "left"}`;
  assert.deepEqual(lines(unseenRemovalStatements(guard, plain, "s1.1a2b3c4d")), [
    `:if ((${onlyOne}) and ([:len ${mounted}]]=1)) do={${disk}; ` +
    `:if ([:len [/disk find where file-path~"s1[.]"]]=0) do={/file remove [find where ${image}]}}`,
    left,
  ]);
  assert.deepEqual(lines(unseenRemovalStatements(guard, inSubvolume, "s1.1a2b3c4d")), [
    `:if ((${onlyOne}) and ([:len ${mounted} and fs-label="pool-fs"]]=1)) do={${disk}; ` +
    `:if ([:len [/disk find where file-path~"s1[.]" or (type="file" and fs-label="pool-fs")]]=0) do={` +
    `/disk/btrfs/subvolume/remove [find where fs="pool-fs" and fullname="csi/s1.1a2b3c4d"]}}`,
    left,
  ]);
});

Deno.test("removeImageStatement() lets the router look for users of the image first", () => {
  assert.equal(
    removeImageStatement(plain).text,
    `:if ([:len [/disk find where file-path~"/s1[.]1a2b3c4d[.]img"]]=0) do={/file remove [find where ${image}]}`,
  );
  assert.equal(
    removeImageStatement(subvolumeLocation("/pool/s1.1a2b3c4d", "pool-fs")).text,
    `:if ([:len [/disk find where file-path~"/s1[.]1a2b3c4d/"]]=0) do={` +
      `${ifOwnLabel}/disk/btrfs/subvolume/remove [find where fs="pool-fs" and fullname="s1.1a2b3c4d"]}}`,
  );
});

Deno.test("subvolumeStatements() make one if no volume has the label, no path holds the text, one parent has that name, and its guard holds", () => {
  const parent = { label: "pool-fs", path: "csi/v1" };
  const guard = { id: "v1", comment: "old" };
  const subvolume = { label: "pool-fs", path: "csi/snap-1.x", parent, readOnly: true, guard };
  assert.deepEqual(subvolumeStatements(subvolume, "/snap-1.").map(({ text }) => text), [
    `:if ([:len [/disk find where type="file" and fs-label="pool-fs"]]>0) do={:error "a volume has this fs-label"}`,
    `:if (([:len [/file find where name~"/snap-1[.]"]]=0) and ` +
    `([:len [/disk/btrfs/subvolume/find where fs="pool-fs" and name="v1"]]=1) and ` +
    `([:len [/disk find where slot="v1" and comment="old"]]=1)) do={` +
    `/disk/btrfs/subvolume/add fs="pool-fs" name="csi/snap-1.x" parent="v1" read-only="yes"}`,
  ]);
});

Deno.test("renameStatement() renames to a free path only, and without a guard regardless of disks", () => {
  assert.equal(
    renameStatement("/pool/a.part", "/pool/a", undefined).text,
    `:if ([:len [/file find where name="pool/a"]]=0) do={/file set [find where name="pool/a.part"] name="pool/a"}`,
  );
});

Deno.test("copyStatement() names source and destination", () => {
  assert.equal(copyStatement("/pool/a", "/pool/b").text, `/file copy "pool/a" name="pool/b"`);
});

Deno.test("every command about an imported image has room for the longest path and comment", () => {
  const path = `/${"p".repeat(maxImagePathBytes - 1)}`;
  const id = "s".repeat(32);
  const added = {
    id,
    location: plainLocation(path),
    sizeBytes: undefined,
    comment: "c".repeat(255),
    imported: true,
  };
  assert.ok(fitsOneExec(addStatements(added), []));
  assert.ok(fitsOneExec([], viewQueries(id, path)));
  assert.ok(fitsOneExec([], createQueries({ id, filePrefix: path, folder: "" })));
  assert.deepEqual(divideIntoQuestions([path, path, path, "/a/b"]).flat(), [path, path, path, "/a/b"]);
  for (const some of divideIntoQuestions([path, path, path, path, path, path, path, path])) {
    assert.ok(fitsOneExec([], namedFilesViewQueries(some)));
  }
});
