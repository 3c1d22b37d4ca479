import assert from "node:assert/strict";
import { provenDevice } from "../../tests/fakes/devices.ts";
import { FakeProcesses, type RecordedRun, type Scripted } from "../../tests/fakes/processes.ts";
import { VolumeError, type VolumeErrorKind } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports.ts";
import { SystemFilesystems } from "./filesystems.ts";
import { parseStats } from "./stats.ts";

const context: CallContext = { requestId: "t", signal: new AbortController().signal, deadlineMs: Infinity };
const device = provenDevice({ path: "/dev/loop3", deviceNumber: "7:3", sizeBytes: 1073741824n });
const mebibyte = 1048576;

function world(script: (run: RecordedRun) => Scripted | undefined) {
  const processes = new FakeProcesses();
  processes.script = script;
  return { processes, filesystems: new SystemFilesystems(processes) };
}

function ends(blkid: Scripted, byte = 0, at = 0) {
  return world(({ tool, line }) => {
    if (tool === "blkid") return blkid;
    const bytes = new Uint8Array(mebibyte);
    if (!line.includes(" skip=0 ")) bytes[at] = byte;
    return { bytes };
  });
}

function is(kind: VolumeErrorKind) {
  return (error: unknown) => VolumeError.is(error, kind);
}

Deno.test("probe() reads the first and the last MiB directly", async () => {
  const { processes, filesystems } = ends(2);
  assert.deepEqual(await filesystems.probe(device, context), { blank: true, signature: { state: "none" } });
  assert.deepEqual(processes.lines.slice(0, 2), [
    "dd if=/dev/loop3 bs=1048576 count=1 skip=0 iflag=direct,fullblock,skip_bytes status=none",
    "dd if=/dev/loop3 bs=1048576 count=1 skip=1072693248 iflag=direct,fullblock,skip_bytes status=none",
  ]);
});

Deno.test("probe() is not blank when the very last byte is not zero", async () => {
  const { filesystems } = ends(2, 1, mebibyte - 1);
  assert.equal((await filesystems.probe(device, context)).blank, false);
});

const signatures: readonly [string, Scripted, unknown][] = [
  ["a type", { stdout: "DEVNAME=/dev/loop3\nTYPE=xfs\n" }, { state: "found", type: "xfs" }],
  ["a partition table", { stdout: "PTTYPE=gpt\n" }, { state: "found", type: "a gpt partition table" }],
  ["neither type nor table", { stdout: "\n" }, { state: "found", type: "a signature without a type" }],
  ["contradictions", 8, { state: "found", type: "several contradictory signatures" }],
  ["nothing", 2, { state: "none" }],
  ["a usage error", { code: 4, stderr: "usage" }, { state: "unknown", reason: "blkid exit=4 output=usage" }],
];

for (const [name, blkid, signature] of signatures) {
  Deno.test(`probe() tells what blkid says of ${name}`, async () => {
    assert.deepEqual((await ends(blkid).filesystems.probe(device, context)).signature, signature);
  });
}

const failures: readonly [string, Scripted][] = [
  ["a short read", { bytes: new Uint8Array(mebibyte - 1) }],
  ["an empty read", { bytes: new Uint8Array() }],
  ["a failing read", { code: 1, stderr: "Input/output error", bytes: new Uint8Array(mebibyte) }],
];

for (const [name, dd] of failures) {
  Deno.test(`probe() throws unavailable for ${name}, though blkid finds nothing`, async () => {
    const { filesystems } = world(({ tool }) => tool === "dd" ? dd : 2);
    await assert.rejects(filesystems.probe(device, context), is("unavailable"));
  });
}

Deno.test("probe() throws precondition for a device smaller than its ends", async () => {
  const { filesystems } = ends(2);
  await assert.rejects(filesystems.probe({ ...device, sizeBytes: 4096n }, context), is("precondition"));
});

for (const [code, complete] of [[0, true], [4, false]] as const) {
  Deno.test(`isComplete() is ${complete} when e2fsck -n ends with ${code}`, async () => {
    const { processes, filesystems } = world(() => code);
    assert.equal(await filesystems.isComplete(device, "ext4", context), complete);
    assert.deepEqual(processes.lines, ["e2fsck -n -f /dev/loop3"]);
  });
}

for (const code of [8, 12, 32]) {
  Deno.test(`isComplete() throws unavailable when e2fsck -n ends with ${code}`, async () => {
    await assert.rejects(
      world(() => code).filesystems.isComplete(device, "ext4", context),
      is("unavailable"),
    );
  });
}

for (const inProgress of [0, 1]) {
  Deno.test(`isComplete() is ${inProgress === 0} when the xfs superblock says ${inProgress} for in progress`, async () => {
    const bytes = new Uint8Array(4096);
    bytes[126] = inProgress;
    const { filesystems } = world(() => ({ bytes }));
    assert.equal(await filesystems.isComplete(device, "xfs", context), inProgress === 0);
  });
}

for (const code of [0, 1]) {
  Deno.test(`check() goes on when e2fsck -p ends with ${code}`, async () => {
    const { processes, filesystems } = world(() => code);
    await filesystems.check(device, "ext4", context);
    assert.equal(processes.runs[0]?.options.mustFinish, true);
  });
}

for (
  const [code, kind] of [[4, "precondition"], [12, "precondition"], [8, "unavailable"], [
    32,
    "unavailable",
  ]] as const
) {
  Deno.test(`check() throws ${kind} with the command to run when e2fsck -p ends with ${code}`, async () => {
    await assert.rejects(
      world(() => code).filesystems.check(device, "ext4", context),
      (error) => is(kind)(error) && /run: e2fsck -f \/dev\/loop3/.test(String(error)),
    );
  });
}

Deno.test("check() runs nothing for xfs", async () => {
  const { processes, filesystems } = world(() => 1);
  await filesystems.check(device, "xfs", context);
  assert.deepEqual(processes.lines, []);
});

Deno.test("format() lets mkfs finish, and never forces", async () => {
  const { processes, filesystems } = world(({ line }) => ({
    stdout: line.endsWith("-V") ? "version 6.1.0" : "",
  }));
  for (const filesystem of ["ext4", "xfs"] as const) {
    await filesystems.format(device, filesystem, { extra: [], lazy: true }, context);
    const run = processes.runs.at(-1)!;
    assert.equal(run.options.mustFinish, true);
    assert.ok(!run.options.args.some((word) => /^-[fF]$/.test(word)));
  }
});

Deno.test("format() throws unavailable when mkfs fails", async () => {
  const { filesystems } = world(() => ({ code: 1, stderr: "apparently in use by the system" }));
  await assert.rejects(
    filesystems.format(device, "ext4", { extra: [], lazy: true }, context),
    (error) => is("unavailable")(error) && /apparently in use/.test(String(error)),
  );
});

Deno.test("eraseEnds() writes zeros to both ends of an existing device only", async () => {
  const { processes, filesystems } = world(() => 0);
  await filesystems.eraseEnds(device, context);
  assert.deepEqual(processes.runs.map((run) => run.options.args.find((word) => word.startsWith("seek="))), [
    "seek=0",
    "seek=1072693248",
  ]);
  assert.ok(processes.lines.every((line) => line.includes("conv=nocreat,")));
});

Deno.test("parseStats() counts in bytes and inodes", () => {
  assert.deepEqual(parseStats("4096 1000 400 300 64 60\n"), {
    totalBytes: 4096000n,
    availableBytes: 1228800n,
    usedBytes: 2457600n,
    totalInodes: 64n,
    freeInodes: 60n,
    usedInodes: 4n,
  });
});

Deno.test("parseStats() throws unavailable for half an answer", () => {
  assert.throws(() => parseStats("4096 1000 400"), is("unavailable"));
});
