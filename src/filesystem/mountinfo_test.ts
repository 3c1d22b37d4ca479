import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { parseMountinfo, readMountTable } from "./mountinfo.ts";

const line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";

Deno.test("parseMountinfo() reads every field of a line", () => {
  assert.deepEqual(parseMountinfo(line + "\n"), [{
    mountId: 36,
    parentId: 35,
    deviceNumber: "98:0",
    root: "/mnt1",
    mountPoint: "/mnt2",
    mountOptions: ["rw", "noatime"],
    filesystem: "ext3",
    source: "/dev/root",
    superOptions: ["rw", "errors=continue"],
  }]);
});

Deno.test("parseMountinfo() reads a line without optional fields, and an empty source", () => {
  const [entry] = parseMountinfo("36 35 0:5 / /run rw - tmpfs  rw");
  assert.deepEqual([entry?.filesystem, entry?.source, entry?.superOptions], ["tmpfs", "", ["rw"]]);
});

Deno.test("parseMountinfo() decodes octal escapes, also of backslashes that look like one", () => {
  const [entry] = parseMountinfo(
    String.raw`1 2 7:0 /nvme0n1//deleted /a\040b\011c\134040 rw - devtmpfs de\012v rw`,
  );
  assert.deepEqual([entry?.mountPoint, entry?.root, entry?.source], [
    "/a b\tc\\040",
    "/nvme0n1//deleted",
    "de\nv",
  ]);
});

for (
  const [name, text] of [
    ["no separator", "36 35 98:0 /mnt1 /mnt2 rw ext3 /dev/root rw"],
    ["no super options", "36 35 98:0 / /mnt2 rw - ext3 /dev/root"],
    ["a device number of another form", "36 35 98 / /mnt2 rw - ext3 /dev/root rw"],
    ["half a line at the end", `${line}\n36 35 98:0 /mnt`],
  ] as const
) {
  Deno.test(`parseMountinfo() throws unavailable for ${name}`, () => {
    assert.throws(() => parseMountinfo(text), refusal("unavailable"));
  });
}

Deno.test("readMountTable() reads until two reads agree", () => {
  const texts = [line, "", `${line}\n${line}`, `${line}\n${line}`];
  const files = new FakeKernelFiles();
  files.readText = () => texts.shift();
  assert.equal(readMountTable(files).length, 2);
  assert.equal(texts.length, 0);
});

Deno.test("readMountTable() throws unavailable when the table keeps changing", () => {
  let reading = 0;
  const files = new FakeKernelFiles();
  files.readText = () => `${reading++} 35 98:0 / /mnt rw - ext3 /dev/root rw`;
  assert.throws(() => readMountTable(files), refusal("unavailable"));
});

Deno.test("readMountTable() throws unavailable when there is no table", () => {
  assert.throws(() => readMountTable(new FakeKernelFiles()), refusal("unavailable"));
});
