import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { provenDevice } from "../../tests/fakes/devices.ts";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { FakeProcesses, type RecordedRun, type Scripted } from "../../tests/fakes/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { samplePlaces } from "./device_samples.ts";
import { parseStats, SystemFilesystems } from "./filesystems.ts";

const context: CallContext = { requestId: "t", signal: new AbortController().signal };
const device = provenDevice({ path: "/dev/loop3", deviceNumber: "7:3", sizeBytes: 1073741824n });
const mebibyte = 1048576;

function deps(script: (run: RecordedRun) => Scripted | undefined) {
  const processes = new FakeProcesses();
  processes.script = script;
  const files = new FakeKernelFiles();
  files.nodes.set(device.path, { kind: "block", deviceNumber: device.deviceNumber });
  const clock = new FakeClock();
  return { processes, files, clock, filesystems: new SystemFilesystems(processes, { files, clock }) };
}

/** A device whose tail has that byte at that offset, and is otherwise zero. */
function ends(blkid: Scripted, byte = 0, at = 0) {
  const made = deps(() => blkid);
  made.files.contents = (_, { offset, length }) => {
    const bytes = new Uint8Array(length);
    if (offset > 0n) bytes[at] = byte;
    return bytes;
  };
  return made;
}

Deno.test("probe() reads the first and the last MiB directly, and then samples", async () => {
  const { files, processes, filesystems } = ends(2);
  const parts: unknown[] = [];
  const { contents } = files;
  files.contents = (path, part) => {
    parts.push([path, part.offset, part.length]);
    return contents(path, part);
  };
  assert.deepEqual(await filesystems.probe(device, context), { blank: true, signature: { state: "none" } });
  const samples = samplePlaces(device.sizeBytes).map(({ offset, length }) => ["/dev/loop3", offset, length]);
  const both = [["/dev/loop3", 0n, mebibyte], ["/dev/loop3", 1072693248n, mebibyte]];
  assert.deepEqual(parts, [...both, ...samples]);
  assert.deepEqual(processes.lines, ["blkid -p -o export -- /dev/loop3"]);
});

Deno.test("probe() reads no more of a device whose first MiB is not zero", async () => {
  const { files, filesystems } = deps(() => ({ stdout: "TYPE=ext4\n" }));
  const offsets: bigint[] = [];
  files.contents = (_, { offset, length }) => {
    offsets.push(offset);
    return new Uint8Array(length).fill(1);
  };
  const { blank } = await filesystems.probe(device, context);
  assert.deepEqual([blank, offsets], [false, [0n]]);
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
  Deno.test(`probe() reports blkid's result for ${name}`, async () => {
    assert.deepEqual((await ends(blkid).filesystems.probe(device, context)).signature, signature);
  });
}

Deno.test("probe() also finds the file system below what a user has written for another signature", async () => {
  const answers: readonly [full: Scripted, alone: Scripted, unknown][] = [
    [{ stdout: "TYPE=lsi_mega_raid_member\n" }, { stdout: "UUID=u\nTYPE=ext4\n" }, {
      type: "ext4",
      uuid: "u",
    }],
    [8, { stdout: "LABEL=l\nTYPE=xfs\n" }, { type: "xfs", label: "l" }],
    [{ stdout: "TYPE=crypto_LUKS\n" }, 2, undefined],
    [{ stdout: "TYPE=linux_raid_member\n" }, 8, undefined],
    [{ stdout: "PTTYPE=gpt\n" }, { code: 4 }, undefined],
  ];
  for (const [full, alone, filesystem] of answers) {
    const { processes, filesystems } = deps(({ options }) => options.args.includes("-n") ? alone : full);
    const { signature } = await filesystems.probe(device, context);
    assert.deepEqual(signature.state === "found" && signature.filesystem, filesystem);
    assert.equal(processes.lines[1], "blkid -p -n ext4,xfs -o export -- /dev/loop3");
  }
});

const failures: readonly [string, () => Uint8Array][] = [
  ["a short read", () => new Uint8Array(mebibyte - 1)],
  ["an empty read", () => new Uint8Array()],
  ["a failing read", () => {
    throw new VolumeError("unavailable", "Input/output error");
  }],
];

for (const [name, contents] of failures) {
  Deno.test(`probe() throws unavailable for ${name}, though blkid finds nothing`, async () => {
    const { files, filesystems } = deps(() => 2);
    files.contents = contents;
    await assert.rejects(filesystems.probe(device, context), refusal("unavailable", /./));
  });
}

for (const at of [0, 1, 2, 3, 4, 524_288, mebibyte - 4, mebibyte - 1]) {
  Deno.test(`probe() is not blank when byte ${at} of the last MiB is not zero`, async () => {
    const { filesystems } = ends(2, 1, at);
    assert.equal((await filesystems.probe(device, context)).blank, false);
  });
}

Deno.test("probe() is not blank when a sample is not zero, unless only the ends count", async () => {
  const { files, filesystems } = deps(() => 2);
  const sampled = samplePlaces(device.sizeBytes)[0]!.offset;
  files.contents = (_, { offset, length }) => new Uint8Array(length).fill(offset === sampled ? 1 : 0);
  assert.equal((await filesystems.probe(device, context)).blank, false);
  assert.equal((await filesystems.probe(device, context, { onlyEnds: true })).blank, true);
});

Deno.test("probe() throws unavailable when the read does not end in time", async () => {
  const { files, clock, filesystems } = deps(() => 2);
  files.hangs = true;
  const probing = assert.rejects(filesystems.probe(device, context), refusal("unavailable", /./));
  await clock.advance(30_000);
  await probing;
});

Deno.test("probe() throws the reason of the call's end when that comes during a read", async () => {
  const { files, filesystems } = deps(() => 2);
  const controller = new AbortController();
  const reason = new VolumeError("cancelled", "gone");
  files.contents = () => {
    controller.abort(reason);
    throw new VolumeError("unavailable", "the call is over");
  };
  const probing = filesystems.probe(device, { ...context, signal: controller.signal });
  await assert.rejects(probing, (error) => error === reason);
});

Deno.test("probe() throws precondition for a device smaller than its ends", async () => {
  const { filesystems } = ends(2);
  await assert.rejects(filesystems.probe({ ...device, sizeBytes: 4096n }, context), refusal("precondition"));
});

for (const [code, complete] of [[0, true], [4, false]] as const) {
  Deno.test(`isComplete() is ${complete} when e2fsck -n ends with ${code}`, async () => {
    const { processes, filesystems } = deps(() => code);
    assert.equal(await filesystems.isComplete(device, "ext4", context), complete);
    assert.deepEqual(processes.lines, ["e2fsck -n -f /dev/loop3"]);
  });
}

Deno.test("isComplete() is true of an ext4 that was ever mounted, without a check", async () => {
  const bytes = new Uint8Array(4096);
  bytes[1024 + 0x2c] = 1;
  const { files, processes, filesystems } = deps(() => 4);
  files.contents = () => bytes;
  assert.equal(await filesystems.isComplete(device, "ext4", context), true);
  assert.deepEqual(processes.lines, []);
});

for (const code of [8, 12, 32]) {
  Deno.test(`isComplete() throws unavailable when e2fsck -n ends with ${code}`, async () => {
    await assert.rejects(
      deps(() => code).filesystems.isComplete(device, "ext4", context),
      refusal("unavailable", /./),
    );
  });
}

for (const inProgress of [0, 1]) {
  Deno.test(`isComplete() is ${inProgress === 0} when the xfs superblock says ${inProgress} for in progress`, async () => {
    const bytes = new Uint8Array(4096);
    bytes[126] = inProgress;
    const { files, filesystems } = deps(() => 0);
    files.contents = () => bytes;
    assert.equal(await filesystems.isComplete(device, "xfs", context), inProgress === 0);
  });
}

for (const code of [0, 1]) {
  Deno.test(`check() goes on when e2fsck -p ends with ${code}`, async () => {
    const { processes, filesystems } = deps(() => code);
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
      deps(() => code).filesystems.check(device, "ext4", context),
      (error) => refusal(kind)(error) && /rds-csi attach VOLUME.*e2fsck -f DEVICE/.test(String(error)),
    );
  });
}

Deno.test("check() throws in-use when e2fsck -p finds the device in use", async () => {
  const { filesystems } = deps(() => ({ code: 8, stdout: "/dev/loop3 is in use.\n", stderr: "aborting.\n" }));
  await assert.rejects(filesystems.check(device, "ext4", context), refusal("in-use", /device=\/dev\/loop3/));
});

Deno.test("check() runs nothing for xfs", async () => {
  const { processes, filesystems } = deps(() => 1);
  await filesystems.check(device, "xfs", context);
  assert.deepEqual(processes.lines, []);
});

Deno.test("format() lets mkfs finish, and never forces", async () => {
  const { processes, filesystems } = deps(({ line }) => ({
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
  const { filesystems } = deps(() => ({ code: 1, stderr: "apparently in use by the system" }));
  await assert.rejects(
    filesystems.format(device, "ext4", { extra: [], lazy: true }, context),
    (error) => refusal("unavailable", /./)(error) && /apparently in use/.test(String(error)),
  );
});

Deno.test("tools that write get a descriptor of this process, which keeps the device open, and no other device", async () => {
  const { processes, files, filesystems } = deps(({ line }) => {
    assert.deepEqual([...files.held], line.endsWith("-V") ? [] : [device.path]);
    return { stdout: "version 6.1.0" };
  });
  const writes = [
    () => filesystems.format(device, "ext4", { extra: [], lazy: true }, context),
    () => filesystems.format(device, "xfs", { extra: [], lazy: true }, context),
    () => filesystems.eraseEnds(device, context),
    () => filesystems.check(device, "ext4", context),
    () => filesystems.grow(device, "ext4", "/staging", context),
  ];
  for (const write of writes) await write();
  const named = processes.runs.filter(({ line }) => line.includes("/proc/1/fd/")).map(({ tool }) => tool);
  assert.deepEqual(named, ["mkfs.ext4", "mkfs.xfs", "dd", "dd", "e2fsck", "resize2fs"]);
  assert.equal(files.held.size, 0);
  const runs = processes.runs.length;
  files.nodes.set(device.path, { kind: "block", deviceNumber: "7:9" });
  for (const write of writes) await assert.rejects(write(), refusal("identity-mismatch", /another device/));
  assert.deepEqual([processes.runs.length, files.held.size], [runs, 0]);
});

Deno.test("eraseEnds() writes zeros to both ends of an existing device only", async () => {
  const { processes, filesystems } = deps(() => 0);
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

Deno.test("parseStats() throws unavailable for an incomplete answer", () => {
  assert.throws(() => parseStats("4096 1000 400"), refusal("unavailable", /./));
});

for (
  const [name, contents, lines] of [
    ["runs no tool where the file system fills the device", () => filled(0n), []],
    ["runs resize2fs where the device is larger", () => filled(1n), ["resize2fs /proc/1/fd//dev/loop3"]],
    ["runs resize2fs where the superblock cannot be read", () => {
      throw new VolumeError("unavailable", "injected");
    }, ["resize2fs /proc/1/fd//dev/loop3"]],
  ] as const
) {
  Deno.test(`grow() ${name}`, async () => {
    const { filesystems, files, processes } = deps(() => 0);
    files.contents = contents;
    await filesystems.grow(device, "ext4", "/staging", context);
    assert.deepEqual(processes.lines, lines);
  });
}

for (
  const [says, kind, why] of [
    [
      "Permission denied to resize filesystem",
      "precondition",
      /errors that a check.* or this process lacks CAP_SYS/,
    ],
    ["New size results in too many block group descriptors.", "precondition", /its blocks are too small/],
    ["Input/output error while reading", "unavailable", /^Cannot grow the file system: /],
  ] as const
) {
  Deno.test(`grow() throws ${kind} where resize2fs says "${says}"`, async () => {
    const { filesystems, files } = deps(() => ({ code: 1, stderr: `resize2fs: ${says}` }));
    files.contents = () => filled(1n);
    await assert.rejects(filesystems.grow(device, "ext4", "/staging", context), refusal(kind, why));
  });
}

/** The start of an ext4 with blocks of 1 KiB that leaves so many of them on the device unused. */
function filled(left: bigint): Uint8Array {
  const start = new Uint8Array(4096);
  const view = new DataView(start.buffer, 1024);
  view.setUint32(0x4, Number(device.sizeBytes / 1024n - left), true);
  view.setUint16(0x38, 0xef53, true);
  return start;
}

Deno.test("trim() returns how many bytes were reported, or that the device takes no discards", async () => {
  const trimmed = deps(() => ({ stdout: "/a b: 1 GiB (1073741824 bytes) trimmed\n" }));
  assert.equal(await trimmed.filesystems.trim(device, "/a b", context), 1073741824n);
  assert.deepEqual(trimmed.processes.lines, ["fstrim --verbose -- /a b"]);
  const refused = { code: 1, stderr: "fstrim: /a: the discard operation is not supported\n" };
  assert.equal(await deps(() => refused).filesystems.trim(device, "/a", context), undefined);
});

const trimFailures: readonly (readonly [Scripted, RegExp])[] = [
  [
    { code: 1, stderr: "fstrim: /a: FITRIM ioctl failed: Input/output error\n" },
    /trim .*Input\/output error/,
  ],
  [{ code: 0, stdout: "something else" }, /Cannot read what fstrim says: output=something else/],
];

for (const [result, message] of trimFailures) {
  Deno.test(`trim() throws unavailable: ${message.source}`, async () => {
    await assert.rejects(
      deps(() => result).filesystems.trim(device, "/a", context),
      refusal("unavailable", message),
    );
  });
}
