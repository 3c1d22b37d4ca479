import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { call } from "../../tests/fakes/node_deps.ts";
import { FakeProcesses, type Scripted } from "../../tests/fakes/processes.ts";
import { isReadOnlyDevice, partitionsOf, readSignatures } from "./contents.ts";

const device = { path: "/dev/nvme0n1", deviceNumber: "259:1", sizeBytes: 8n, nqn: "", nsid: 1, uniqueId: "" };
const folder = "/sys/dev/block/259:1";

Deno.test("isReadOnlyDevice() reports the kernel's flag, and that a device is gone", () => {
  const files = new FakeKernelFiles();
  assert.equal(isReadOnlyDevice(files, device), undefined);
  files.texts.set(`${folder}/ro`, "0");
  assert.equal(isReadOnlyDevice(files, device), false);
  files.texts.set(`${folder}/ro`, "1");
  assert.equal(isReadOnlyDevice(files, device), true);
});

Deno.test("partitionsOf() reads partitions from the kernel, by their numbers and not by their names", () => {
  const files = new FakeKernelFiles();
  assert.deepEqual(partitionsOf(files, device), []);
  files.folders.set(folder, ["queue", "nvme0n1p10", "nvme0n1p2", "ro"]);
  for (
    const [name, index, number] of [["nvme0n1p10", "10", "259:12"], ["nvme0n1p2", "2", "259:4"]] as const
  ) {
    files.texts.set(`${folder}/${name}/partition`, index);
    files.texts.set(`${folder}/${name}/dev`, number);
    files.texts.set(`${folder}/${name}/size`, "4");
  }
  const read = files.readText.bind(files);
  const paths: string[] = [];
  files.readText = (path) => {
    paths.push(path);
    return read(path);
  };
  assert.deepEqual(partitionsOf(files, device), [
    { path: "/dev/nvme0n1p2", deviceNumber: "259:4", sizeBytes: 2048n },
    { path: "/dev/nvme0n1p10", deviceNumber: "259:12", sizeBytes: 2048n },
  ]);
  assert.equal(paths.length, 6, "every stage reads it, and a device has thirty other attributes");
});

const answers: readonly (readonly [answer: Scripted, expected: Readonly<Record<string, string>>])[] = [
  [
    { stdout: "DEVNAME=/dev/x\nUUID=1-2\nLABEL=a\\ b=c\nTYPE=ext4\n" },
    { UUID: "1-2", LABEL: "a b=c", TYPE: "ext4" },
  ],
  [{ stdout: "DEVNAME=/dev/x\nPTTYPE=gpt\n" }, { PTTYPE: "gpt" }],
  [2, {}],
  [8, { TYPE: "several contradictory signatures" }],
];

for (const [answer, expected] of answers) {
  Deno.test(`readSignatures() reads ${JSON.stringify(answer)}`, async () => {
    const processes = new FakeProcesses();
    processes.script = () => answer;
    assert.deepEqual(await readSignatures("/dev/x", processes, call()), expected);
    assert.deepEqual(processes.lines, ["blkid -p -o export -- /dev/x"]);
  });
}

Deno.test("readSignatures() does not mistake a failure for an empty device", async () => {
  const processes = new FakeProcesses();
  processes.script = () => 4;
  await assert.rejects(
    readSignatures("/dev/x", processes, call()),
    refusal("unavailable"),
  );
});
