import assert from "node:assert/strict";
import { fitsOneExec } from "./exchange.ts";
import { addStatements, changeStatements, removeStatements } from "./mutations.ts";
import { allDisksQuery, disksQuery, filesQuery } from "./queries.ts";
import { createQueries, viewQueries } from "./views.ts";

function lines(statements: readonly { readonly text: string }[]): string[] {
  return statements.map((statement) => statement.text);
}

const slot = "pvc-0123456789abcdef0123456789ab";
const path = `/storage-pool/metal-csi/${slot}.1a2b3c4d.img`;

const added = { id: "s1", imagePath: "/pool/csi/s1.img", sizeBytes: 1073741824n, comment: "c$" };

Deno.test("addStatements() adds a disk that nobody mounts or sees", () => {
  assert.deepEqual(lines(addStatements(added)), [
    `/disk add type="file" slot="s1" file-path="/pool/csi/s1.img" file-size="1073741824" mount-filesystem="no" ` +
    `nvme-tcp-export="no" comment="c\\$"`,
  ]);
});

Deno.test("addStatements() makes the folder first, unless another volume has just made it", () => {
  assert.equal(
    lines(addStatements({ ...added, makeFolder: "/pool/csi" }))[0],
    `:if ([:len [/file find where name="pool/csi"]] = 0) do={/file add type="directory" name="pool/csi"}`,
  );
});

Deno.test("changeStatements() sets everything in one statement that compares the comment", () => {
  const own = `/disk set [find where slot="s1" and comment="old"]`;
  const on = { nqn: "nqn.2000-02.com.mikrotik:s1:1-ab", port: 4420 };
  assert.deepEqual(lines(changeStatements("s1", "old", { comment: "new", export: on })), [
    `${own} comment="new" nvme-tcp-export="yes" nvme-tcp-server-port="4420" nvme-tcp-server-nqn="${on.nqn}"`,
  ]);
  assert.deepEqual(lines(changeStatements("s1", "old", { comment: "new", export: false })), [
    `${own} nvme-tcp-export="no" comment="new"`,
  ]);
  assert.deepEqual(lines(changeStatements("s1", "old", { comment: "new", sizeBytes: 2147483648n })), [
    `${own} file-size="2147483648" comment="new"`,
  ]);
});

Deno.test("changeStatements() is empty when nothing changes", () => {
  assert.deepEqual(changeStatements("s1", "old", {}), []);
});

Deno.test("removeStatements() lets the router look for users of the image before it goes", () => {
  const file = `:if ([:len [/disk find where slot="s1" or file-path="/p/c/s1.img"]] = 0) ` +
    `do={/file remove [find where name="p/c/s1.img"]}`;
  assert.deepEqual(lines(removeStatements("s1", "old", "/p/c/s1.img")), [
    `/disk remove [find where slot="s1" and comment="old"]`,
    file,
  ]);
  assert.deepEqual(lines(removeStatements("s1", undefined, "/p/c/s1.img")), [file]);
});

const comment = (bytes: number) => "x".repeat(bytes);

Deno.test("every usual command fits one exec with what is read back", () => {
  const volume = {
    id: slot,
    imagePath: path,
    sizeBytes: 1n << 40n,
    comment: comment(140),
    makeFolder: "/storage-pool/metal-csi",
  };
  const on = { nqn: `nqn.2000-02.com.mikrotik:${slot}:12-ab12cd34`, port: 4420 };
  const change = { comment: comment(200), export: on };
  assert.ok(fitsOneExec([], viewQueries(slot, [path, path])), "view");
  assert.ok(fitsOneExec([], createQueries(true, slot, [path, "/storage-pool/metal-csi"])), "create view");
  assert.ok(fitsOneExec(addStatements(volume), [allDisksQuery(true), filesQuery([path])]), "add");
  assert.ok(fitsOneExec(changeStatements(slot, comment(200), change), viewQueries(slot, [])), "change");
  assert.ok(
    fitsOneExec(removeStatements(slot, comment(160), path), [disksQuery(slot, [path]), filesQuery([path])]),
    "remove",
  );
});
