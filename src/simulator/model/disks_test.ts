import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { plainDisk } from "./disk.ts";
import { DiskTable } from "./disks.ts";

function table() {
  const clock = new FakeClock();
  const heard: string[] = [];
  const disks = new DiskTable(clock, (before, after) => {
    heard.push(`${before?.slot ?? "-"}>${after?.slot ?? "-"}`);
  });
  return { clock, disks, heard };
}

function file(slot: string) {
  return { ...plainDisk, slot, type: "file", filePath: `/pool/${slot}` };
}

Deno.test("DiskTable finds by slot and by path, also after a rename", () => {
  const { disks } = table();
  const disk = disks.add(file("a"));
  disks.replace({ ...disk, slot: "b" });
  assert.equal(disks.findBySlot("a"), undefined);
  assert.equal(disks.findBySlot("b")?.id, disk.id);
  assert.deepEqual(disks.findByPath("/pool/a").map(({ slot }) => slot), ["b"]);
});

Deno.test("DiskTable distinguishes two disks on one path", () => {
  const { disks } = table();
  const first = disks.add(file("a"));
  disks.add({ ...file("b"), filePath: first.filePath });
  disks.remove(first.id);
  assert.deepEqual(disks.findByPath(first.filePath).map(({ slot }) => slot), ["b"]);
});

Deno.test("DiskTable.forgetSince() undoes adding, changing and removing, newest first", async () => {
  const { clock, disks } = table();
  const [kept, removed] = [disks.add(file("kept")), disks.add(file("removed"))];
  disks.replace({ ...kept, comment: "saved" });
  await clock.advance(1000);
  disks.add(file("new"));
  disks.replace({ ...kept, comment: "one" });
  disks.replace({ ...kept, comment: "two" });
  disks.remove(removed.id);
  disks.forgetSince(clock.now() - 500);
  assert.deepEqual(disks.list().map(({ slot, comment }) => [slot, comment]), [
    ["kept", "saved"],
    ["removed", ""],
  ]);
});

Deno.test("DiskTable.renumber() gives new ids in the requested order, and finds by them", () => {
  const { disks } = table();
  for (const slot of ["a", "b", "c"]) disks.add(file(slot));
  disks.remove(1);
  disks.renumber(({ slot }) => slot === "c" ? 0 : 1);
  assert.deepEqual(disks.list().map(({ id, slot }) => [id, slot]), [[1, "c"], [2, "b"]]);
  assert.equal(disks.findBySlot("b")?.id, 2);
  assert.equal(disks.add(file("d")).id, 3);
});

Deno.test("DiskTable.hideFiles() hides file disks from everything but their own slots", () => {
  const { disks, heard } = table();
  disks.add({ ...plainDisk, slot: "nvme1" });
  disks.add(file("a"));
  disks.hideFiles("late", true);
  assert.deepEqual(disks.list().map(({ slot }) => slot), ["nvme1"]);
  assert.equal(disks.findBySlot("a"), undefined);
  assert.deepEqual(disks.findByPath("/pool/a"), []);
  assert.equal(disks.isTaken("a"), true);
  disks.hideFiles("late", false);
  assert.equal(disks.findBySlot("a")?.slot, "a");
  assert.deepEqual(heard, ["->nvme1", "->a", "a>-", "->a"]);
});

Deno.test("DiskTable.numberOf() counts the visible disks before it, whatever came, went and came back", async () => {
  const { clock, disks } = table();
  const added = ["a", "b", "c", "d"].map((slot) => disks.add(file(slot)));
  disks.add({ ...plainDisk, slot: "hardware" });
  disks.save();
  await clock.advance(10);
  disks.remove(added[1]!.id);
  const numbers = () => disks.list().map(({ id }) => disks.numberOf(id));
  assert.deepEqual(numbers(), [0, 1, 2, 3]);
  disks.forgetSince(clock.now() - 1);
  assert.deepEqual(numbers(), [0, 1, 2, 3, 4]);
  assert.equal(disks.numberOf(added[2]!.id), 2);
  disks.renumber(({ slot }) => slot === "c" ? 0 : 1);
  assert.deepEqual(numbers(), [0, 1, 2, 3, 4]);
  disks.hideFiles("late", true);
  assert.deepEqual(numbers(), [0]);
});
