import assert from "node:assert/strict";
import { mountsAt } from "./mounts_at.ts";
import type { MountEntry } from "../../ports/node_ports.ts";

function entry(mountId: number, parentId: number, mountPoint: string): MountEntry {
  return {
    mountId,
    parentId,
    mountPoint,
    deviceNumber: "7:3",
    root: "/",
    mountOptions: ["rw"],
    filesystem: "ext4",
    source: "/dev/loop3",
    superOptions: ["rw"],
  };
}

const root = entry(1, 0, "/");

function idsAt(table: readonly MountEntry[], mountPath: string): readonly number[] {
  return mountsAt(table, mountPath).map((each) => each.mountId);
}

Deno.test("mountsAt() returns the stacked mounts at the mount point, the visible one last", () => {
  const table = [root, entry(2, 1, "/k"), entry(3, 2, "/k/t"), entry(4, 3, "/k/t"), entry(5, 1, "/other")];
  assert.deepEqual([idsAt(table, "/k/t"), idsAt(table, "/k"), idsAt(table, "/none")], [[3, 4], [2], []]);
});

Deno.test("mountsAt() leaves out the copy in a mount that is covered by another one", () => {
  const table = [root, entry(2, 1, "/k"), entry(3, 2, "/k"), entry(4, 2, "/k/t"), entry(5, 3, "/k/t")];
  assert.deepEqual([idsAt(table, "/k/t"), idsAt(table, "/k")], [[5], [2, 3]]);
});

Deno.test("mountsAt() leaves out the copy in a mount whose folder on the way is covered by another one", () => {
  const table = [
    root,
    entry(2, 1, "/a/k"),
    entry(3, 1, "/a/k/t"),
    entry(4, 2, "/a/k/t"),
    entry(5, 1, "/a/k/tt"),
  ];
  assert.deepEqual([idsAt(table, "/a/k/t"), idsAt(table, "/a/k")], [[4], [2]]);
  assert.deepEqual(idsAt([root, entry(2, 1, "/a/k"), entry(3, 1, "/a/kt"), entry(4, 3, "/a/kt")], "/a/kt"), [
    3,
    4,
  ]);
});

Deno.test("mountsAt() returns the mounts when none is reached, and when a parent is not in the table", () => {
  const hidden = [root, entry(2, 1, "/k"), entry(3, 2, "/k"), entry(4, 2, "/k/t"), entry(5, 4, "/k/t")];
  assert.deepEqual(idsAt(hidden, "/k/t"), [4, 5]);
  assert.deepEqual(idsAt([entry(8, 99, "/k/t"), entry(9, 8, "/k/t")], "/k/t"), [8, 9]);
});
