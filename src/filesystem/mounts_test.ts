import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { provenDevice } from "../../tests/fakes/devices.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { FakeProcesses, type RecordedRun, type Scripted } from "../../tests/fakes/processes.ts";
import { type VolumeErrorKind } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { PathInfo } from "../volume/ports/node_ports.ts";
import { SystemMounts } from "./mounts.ts";

const context: CallContext = { requestId: "t", signal: new AbortController().signal };
const device = provenDevice({ path: "/dev/loop3", deviceNumber: "7:3" });

/** A mount table that mount and umount change as the kernel does, unless the test says otherwise. */
class Deps {
  readonly processes = new FakeProcesses();
  readonly files = new FakeKernelFiles();
  readonly clock = new FakeClock();
  readonly mounts: SystemMounts;
  lines: string[] = [];
  bound: PathInfo = { kind: "block", deviceNumber: "7:3" };
  copies = 1;

  constructor(script?: (run: RecordedRun, deps: Deps) => Scripted | undefined) {
    this.files.readText = (path) => path.startsWith("/proc/self/") ? this.lines.join("\n") : "7";
    const paths = { info: () => Promise.resolve(this.bound) };
    this.mounts = new SystemMounts(this.processes, this.files, paths, this.clock);
    this.processes.script = (run) => script?.(run, this) ?? this.kernel(run);
  }

  add(
    target: string,
    options = "rw,nosuid,relatime",
    device = "7:3",
    type = "ext4",
    superOptions = "rw",
    root = "/",
  ) {
    this.lines.push(`1 1 ${device} ${root} ${target} ${options} - ${type} /dev/x ${superOptions}`);
  }

  kernel({ tool, options: { args } }: RecordedRun): number {
    const target = args.at(-1)!;
    const text = args[args.indexOf("-o") + 1]!.split(",");
    if (tool === "umount") {
      this.lines.splice(this.lines.findLastIndex((line) => line.includes(` ${target} `)), 1);
    } else if (args.includes("--bind")) {
      for (let i = 0; i < this.copies; i++) this.add(target);
    } else if (text.includes("remount")) {
      this.lines = this.lines.map((line) =>
        line.includes(` ${target} `) ? line.replace(" rw,", " ro,") : line
      );
    } else {
      const mode = text.includes("ro") ? "ro" : "rw";
      this.add(target, `${mode},relatime`, "7:3", args[args.indexOf("-t") + 1]!, mode);
    }
    return 0;
  }
}

const optionCases = [
  ["ext4", false, "rw,errors=remount-ro,noatime"],
  ["ext4", true, "ro,noload,errors=remount-ro,noatime"],
  ["xfs", false, "rw,nouuid,noatime"],
  ["xfs", true, "ro,norecovery,nouuid,noatime"],
] as const;

for (const [filesystem, readOnly, options] of optionCases) {
  Deno.test(`mountDevice() mounts ${filesystem} with ${options} when readOnly is ${readOnly}`, async () => {
    const deps = new Deps();
    await deps.mounts.mountDevice(device, "/staging", filesystem, { readOnly, flags: ["noatime"] }, context);
    assert.deepEqual(deps.processes.lines, [
      `mount -n -t ${filesystem} -o ${options} -- /dev/loop3 /staging`,
    ]);
    assert.equal(deps.processes.runs[0]?.options.mustFinish, true);
  });
}

for (const errors of ["errors=continue", "errors=remount-ro"]) {
  Deno.test(`mountDevice() leaves ${errors} of the mount flags as it is`, async () => {
    const deps = new Deps();
    const options = { readOnly: false, flags: ["noatime", errors] };
    await deps.mounts.mountDevice(device, "/staging", "ext4", options, context);
    assert.deepEqual(deps.processes.lines, [
      `mount -n -t ext4 -o rw,noatime,${errors} -- /dev/loop3 /staging`,
    ]);
  });
}

const wrongMounts: readonly [string, (deps: Deps) => void][] = [
  ["another device", (deps) => deps.add("/staging", "rw", "7:4")],
  ["another file system", (deps) => deps.add("/staging", "rw", "7:3", "xfs")],
  ["a read-only file system", (deps) => deps.add("/staging", "rw", "7:3", "ext4", "ro")],
];

for (const [name, mount] of wrongMounts) {
  Deno.test(`mountDevice() unmounts and throws identity-mismatch when it got ${name}`, async () => {
    const deps = new Deps(({ tool }, deps) => tool === "mount" ? (mount(deps), 0) : undefined);
    await assert.rejects(
      deps.mounts.mountDevice(device, "/staging", "ext4", { readOnly: false, flags: [] }, context),
      refusal("identity-mismatch"),
    );
    assert.deepEqual(deps.lines, []);
  });
}

Deno.test("mountDevice() throws mount's complaint", async () => {
  const deps = new Deps(() => ({ code: 32, stderr: "mount: bad superblock" }));
  await assert.rejects(
    deps.mounts.mountDevice(device, "/staging", "ext4", { readOnly: false, flags: [] }, context),
    (error) =>
      refusal("precondition")(error) &&
      /bad superblock.*rds-csi attach VOLUME.*e2fsck -f -n DEVICE/.test(String(error)),
  );
});

Deno.test("bindFolder() only remounts what was bound but not made read-only", async () => {
  const deps = new Deps();
  deps.add("/target");
  await deps.mounts.bindFolder(device, "/staging", "/target", { readOnly: true }, context);
  assert.deepEqual(deps.processes.lines, ["mount -n -o remount,bind,ro,nosuid,relatime -- /target"]);
});

Deno.test("bindFolder() unmounts and throws when the remount had no effect", async () => {
  const deps = new Deps(({ line }) => line.includes("remount") ? 0 : undefined);
  await assert.rejects(
    deps.mounts.bindFolder(device, "/staging", "/target", { readOnly: true }, context),
    refusal("identity-mismatch"),
  );
  assert.deepEqual(deps.lines, []);
});

Deno.test("bindFolder() throws identity-mismatch for a folder that is not the device's root", async () => {
  const deps = new Deps(({ tool }, deps) => {
    if (tool !== "mount") return undefined;
    deps.add("/target", "rw", "7:3", "ext4", "rw", "/sub");
    return 0;
  });
  await assert.rejects(
    deps.mounts.bindFolder(device, "/staging", "/target", { readOnly: false }, context),
    refusal("identity-mismatch"),
  );
  assert.deepEqual(deps.lines, []);
});

Deno.test("bindFolder() leaves another program's mount at the target alone", async () => {
  const deps = new Deps();
  deps.add("/target", "rw", "8:1");
  await assert.rejects(
    deps.mounts.bindFolder(device, "/staging", "/target", { readOnly: false }, context),
    refusal("identity-mismatch"),
  );
  assert.deepEqual(deps.processes.lines, []);
});

Deno.test("bindDevice() unmounts the copies of its mount", async () => {
  const deps = new Deps();
  deps.copies = 5;
  await deps.mounts.bindDevice(device, "/target", { readOnly: false }, context);
  assert.equal(deps.lines.length, 1);
});

Deno.test("bindDevice() unmounts and throws identity-mismatch when the target is another device", async () => {
  const deps = new Deps();
  deps.bound = { kind: "block", deviceNumber: "7:4" };
  await assert.rejects(
    deps.mounts.bindDevice(device, "/target", { readOnly: false }, context),
    refusal("identity-mismatch"),
  );
  assert.deepEqual(deps.lines, []);
});

Deno.test("unmount() unmounts everything at the target and nothing else", async () => {
  const deps = new Deps();
  for (const target of ["/target", "/target", "/target/below", "/other"]) deps.add(target);
  await deps.mounts.unmount("/target", context);
  assert.equal(deps.processes.lines.length, 2);
  assert.ok(deps.lines.every((line) => !line.includes(" /target ")));
  assert.equal(deps.lines.length, 2);
});

Deno.test("unmount() names the process that keeps it busy, before others with files of the same file system", async () => {
  const deps = busy();
  const { clock, files, mounts } = deps;
  deps.add("/target");
  const asked = assert.rejects(
    mounts.unmount("/target", context),
    refusal(
      "in-use",
      /^Cannot unmount \/target because process 30 \(7\) uses \/target\/log of .* on \/dev\/x; end that/,
    ),
  );
  await clock.advance(0);
  await asked;
  files.folders.delete("/proc/30/fd");
  const others = assert.rejects(
    mounts.unmount("/target", context),
    refusal("in-use", /process 20 \(7\) uses \/data/),
  );
  await clock.advance(0);
  await others;
});

/** A busy mount, with two processes that have files of its file system open. */
function busy() {
  const deps = new Deps(() => ({ code: 32, stderr: "umount: /target: target is busy." }));
  const { files } = deps;
  files.links.set("/proc/self", "1");
  files.folders.set("/proc", ["1", "20", "30", "self"]);
  for (const [pid, path] of [["20", "/data"], ["30", "/target/log"]] as const) {
    files.folders.set(`/proc/${pid}/fd`, ["4"]);
    files.links.set(`/proc/${pid}/fd/4`, path);
    files.nodes.set(`/proc/${pid}/fd/4`, { kind: "file", filesystemNumber: "7:3" });
  }
  return deps;
}

const failures: readonly [string, Scripted, VolumeErrorKind][] = [
  ["in-use when it is busy", { code: 32, stderr: "umount: /target: target is busy." }, "in-use"],
  [
    "unavailable when it fails otherwise",
    { code: 32, stderr: "umount: /target: Input/output error" },
    "unavailable",
  ],
  ["unavailable when umount says it is done and the table does not", 0, "unavailable"],
];

for (const [name, scripted, kind] of failures) {
  Deno.test(`unmount() throws ${name}`, async () => {
    const deps = new Deps(() => scripted);
    deps.add("/target");
    await assert.rejects(deps.mounts.unmount("/target", context), refusal(kind));
  });
}

Deno.test("unmount() succeeds when umount complains but the table shows nothing any more", async () => {
  const deps = new Deps((_, deps) => {
    deps.lines = [];
    return { code: 32, stderr: "not mounted" };
  });
  deps.add("/target");
  await deps.mounts.unmount("/target", context);
  assert.deepEqual(deps.lines, []);
});

Deno.test("a refused mount names the PersistentVolume's options first, without their values, and no options that it has not", async () => {
  const refused = () => ({
    code: 32,
    stderr: "mount: wrong fs type, bad option, bad superblock on /dev/loop3",
  });
  const { mounts } = new Deps(refused);
  const mount = (flags: readonly string[]) =>
    mounts.mountDevice(device, "/staging", "ext4", { readOnly: false, flags }, context);
  const mistyped = /bad superblock.*; check the mount options .*: noatme,data; to look at it: .*e2fsck/;
  await assert.rejects(mount(["noatme", "data=secret"]), refusal("precondition", mistyped));
  await assert.rejects(mount([]), refusal("precondition", /bad superblock on \/dev\/loop3; to look at it/));
});

Deno.test("thaw() ends every freeze, says whether there was one, and throws unavailable where some may be left", async () => {
  const not = { code: 1, stderr: "fsfreeze: /staging: unfreeze failed: Invalid argument" };
  const dead = { code: 1, stderr: "fsfreeze: cannot open /staging: Input/output error" };
  const thaw = (...said: readonly Scripted[]) => {
    const answers = [...said];
    return new Deps(() => answers.shift() ?? 0).mounts.thaw("/staging", context);
  };
  assert.deepEqual([await thaw(0, not), await thaw(0, 0, not), await thaw(not)], [true, true, false]);
  await assert.rejects(thaw(0, dead), refusal("unavailable", /Cannot thaw.*Input\/output error/));
  await assert.rejects(thaw(), refusal("unavailable", /Cannot thaw.*frozen again and again/));
});
