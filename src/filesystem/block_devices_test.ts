import { refusal } from "../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { provenDevice } from "../../tests/fakes/devices.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { FakeProcesses } from "../../tests/fakes/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import type { CallContext } from "../volume/ports/system.ts";
import { SystemBlockDevices } from "./block_devices.ts";

const context: CallContext = { requestId: "t", signal: new AbortController().signal };
const device = { path: "/dev/loop3", deviceNumber: "7:3" };

function deps() {
  const files = new FakeKernelFiles();
  files.links.set("/proc/self", "1");
  files.folders.set("/proc", ["1", "20", "self", "sys"]);
  files.folders.set("/proc/1/fd", []);
  files.folders.set("/sys/block", ["vda"]);
  files.folders.set("/proc/20/fd", ["0", "5"]);
  files.links.set("/proc/20/fd/0", "pipe:[17]");
  files.links.set("/proc/20/fd/5", "/some/file");
  files.nodes.set("/proc/20/fd/5", { kind: "file" });
  files.texts.set("/proc/20/comm", "qemu");
  files.texts.set(
    "/proc/self/mountinfo",
    [
      "1 0 254:0 / / rw - ext4 /dev/vda rw",
      "2 1 0:6 / /dev rw - devtmpfs devtmpfs rw",
      "3 1 0:6 /loop3 /kubelet/dev/pod rw - devtmpfs devtmpfs rw",
      "4 1 0:40 / /far rw - nfs4 server:/ rw",
    ].join("\n") + "\n",
  );
  const clock = new FakeClock();
  const devices = new SystemBlockDevices(new FakeProcesses(), files, clock);
  const holder = async () => {
    const asked = devices.holder(device, context);
    await clock.advance(0);
    return await asked;
  };
  return { files, clock, devices, holder };
}

Deno.test("layers() names what the node has made on top of a device and of its partitions", async () => {
  const { files, devices } = deps();
  const own = { path: "/dev/nvme0n1", deviceNumber: "259:3" };
  const folder = "/sys/dev/block/259:3";
  files.folders.set(folder, ["holders", "nvme0n1p1", "queue", "size"]);
  files.folders.set(`${folder}/holders`, ["dm-1"]);
  files.folders.set(`${folder}/nvme0n1p1/holders`, ["md127", "dm-1", "bcache0"]);
  files.texts.set("/sys/block/dm-1/dm/name", "vg-root");
  files.texts.set("/sys/block/dm-1/dm/uuid", "LVM-x7Yq");
  files.texts.set("/sys/block/md127/md/level", "raid1");
  assert.deepEqual(await devices.layers(own), [
    "/dev/bcache0",
    "/dev/dm-1 (vg-root, LVM)",
    "/dev/md127 (raid1)",
  ]);
  assert.deepEqual(await devices.layers(device), []);
});

Deno.test("holder() is undefined when no descriptor refers to the device", async () => {
  assert.equal(await deps().holder(), undefined);
});

Deno.test("holder() names the process with a descriptor on the device, by whatever path it opened it", async () => {
  const { files, holder } = deps();
  files.links.set("/proc/20/fd/5", "/container/xvda (deleted)");
  files.nodes.set("/proc/20/fd/5", { kind: "block", deviceNumber: "7:3" });
  assert.match((await holder())?.description ?? "", /process 20 \(qemu\)/);
});

Deno.test("holder() ignores another device, and this process itself", async () => {
  const { files, holder } = deps();
  files.nodes.set("/proc/20/fd/5", { kind: "block", deviceNumber: "7:4" });
  files.folders.set("/proc/1/fd", ["9"]);
  files.links.set("/proc/1/fd/9", "/dev/loop3");
  files.nodes.set("/proc/1/fd/9", { kind: "block", deviceNumber: "7:3" });
  assert.equal(await holder(), undefined);
});

Deno.test("holder() ignores a process that ended meanwhile", async () => {
  const { files, holder } = deps();
  files.folders.delete("/proc/20/fd");
  assert.equal(await holder(), undefined);
});

for (const unreadable of ["/proc/20/fd", "/proc/20/fd/5"]) {
  Deno.test(`holder() is uncertain of a process of which ${unreadable} cannot be read`, async () => {
    const { files, holder } = deps();
    const refuse = (path: string) => {
      if (path === unreadable) throw new VolumeError("unavailable", "errno=13");
    };
    const { list, readLink } = files;
    files.list = (path) => (refuse(path), list.call(files, path));
    files.readLink = (path) => (refuse(path), readLink.call(files, path));
    const found = await holder();
    assert.equal(found?.certain, false);
    assert.match(found.description, /process 20/);
  });
}

for (const missing of ["/proc", "/sys/block"]) {
  Deno.test(`holder() is uncertain when ${missing} cannot be listed`, async () => {
    const { files, holder } = deps();
    files.folders.delete(missing);
    const found = await holder();
    assert.equal(found?.certain, false);
    assert.match(found.description, /cannot be read/);
  });
}

Deno.test("holder() names a loop device on top", async () => {
  const { files, holder } = deps();
  files.folders.set("/sys/block", ["loop0", "loop1", "vda"]);
  files.texts.set("/sys/block/loop1/loop/backing_file", "/kubelet/dev/pod");
  files.nodes.set("/kubelet/dev/pod", { kind: "block", deviceNumber: "7:3" });
  const found = await holder();
  assert.equal(found?.certain, true);
  assert.match(found.description, /loop1/);
});

Deno.test("holder() does not touch the file of a loop device that lies on a file system", async () => {
  const { files, holder } = deps();
  files.folders.set("/sys/block", ["loop1", "loop2"]);
  files.texts.set("/sys/block/loop1/loop/backing_file", "/far/image");
  files.texts.set("/sys/block/loop2/loop/backing_file", "/kubelet/dev/pods");
  const asked: string[] = [];
  files.info = (path) => void asked.push(path) as undefined;
  assert.equal(await holder(), undefined);
  assert.deepEqual(asked.filter((path) => !path.startsWith("/proc/")), []);
});

Deno.test("holder() prefers a certain holder to an uncertain one", async () => {
  const { files, holder } = deps();
  const { list } = files;
  files.list = (path) => {
    if (path === "/proc/20/fd") throw new VolumeError("unavailable", "errno=13");
    return list.call(files, path);
  };
  files.folders.set("/proc", ["20", "30"]);
  files.folders.set("/proc/30/fd", ["3"]);
  files.links.set("/proc/30/fd/3", "/dev/loop3");
  files.nodes.set("/proc/30/fd/3", { kind: "block", deviceNumber: "7:3" });
  const found = await holder();
  assert.equal(found?.certain, true);
  assert.match(found.description, /process 30/);
});

Deno.test("holder() has listed the processes, and read none, when other work has its first turn", async () => {
  const { files, devices, clock } = deps();
  const { list } = files;
  const listed: string[] = [];
  files.list = (path) => {
    listed.push(path);
    return list.call(files, path);
  };
  const asked = devices.holder(device, context);
  await clock.advance(-1);
  assert.deepEqual(listed, ["/sys/block", "/proc"]);
  await clock.advance(1);
  assert.equal(await asked, undefined);
  assert.deepEqual(listed, ["/sys/block", "/proc", "/proc/20/fd"]);
});

Deno.test("holder() lets other work have its turn, and stops when the call is cancelled", async () => {
  const { files, devices, clock } = deps();
  const many = Array.from({ length: 1000 }, (_, i) => String(i));
  files.folders.set("/proc/20/fd", many);
  const controller = new AbortController();
  const asked = devices.holder(device, { ...context, signal: controller.signal });
  await clock.advance(-1);
  assert.equal(clock.waiting, 1);
  controller.abort(new VolumeError("cancelled", "gone"));
  await assert.rejects(asked, refusal("cancelled", /./));
});

Deno.test("isUnclaimed() is true when the exclusive open succeeds, if not at once", async () => {
  const { files, devices, clock } = deps();
  assert.equal(await devices.isUnclaimed(device, context), true);
  files.claimed.add("/dev/loop3");
  const asked = devices.isUnclaimed(device, context);
  await clock.advance(60);
  files.claimed.clear();
  await clock.advance(60);
  assert.equal(await asked, true);
});

Deno.test("isUnclaimed() is false when the exclusive open keeps failing", async () => {
  const { files, devices, clock } = deps();
  files.claimed.add("/dev/loop3");
  const asked = devices.isUnclaimed(device, context);
  await clock.advance(2_000);
  assert.equal(await asked, false);
});

const readOnlyTable: readonly [
  string,
  readonly (string | undefined)[],
  boolean,
  number,
  "set" | "left" | "unavailable",
][] = [
  ["a writable device read-only", ["0", "1"], true, 0, "set"],
  ["a read-only device read-only", ["1"], true, 0, "left"],
  ["a writable device writable", ["0"], false, 0, "left"],
  ["a device of which the kernel says nothing", [undefined, undefined], true, 0, "set"],
  ["a device that stays writable", ["0", "0"], true, 0, "unavailable"],
  ["a device that the tool refuses", ["0", "0"], true, 1, "unavailable"],
];

for (const [name, flags, readOnly, code, outcome] of readOnlyTable) {
  Deno.test(`setReadOnly() of ${name}: ${outcome}`, async () => {
    const { files, clock } = deps();
    const path = "/sys/dev/block/7:3/ro";
    if (flags[0] !== undefined) files.texts.set(path, flags[0]);
    const processes = new FakeProcesses();
    processes.script = () => {
      if (flags[1] !== undefined) files.texts.set(path, flags[1]);
      return code;
    };
    const devices = new SystemBlockDevices(processes, files, clock);
    const attempt = devices.setReadOnly(provenDevice(device), readOnly, context);
    if (outcome === "unavailable") await assert.rejects(attempt, refusal("unavailable"));
    else await attempt;
    assert.deepEqual(processes.lines, outcome === "left" ? [] : ["blockdev --setro /dev/loop3"]);
  });
}

Deno.test("hold() keeps a device open until it is released, and no other one", async () => {
  const { files, devices } = deps();
  await assert.rejects(devices.hold(device, context), refusal("unavailable"));
  files.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:3" });
  const release = await devices.hold(device, context);
  assert.deepEqual([...files.held], ["/dev/loop3"]);
  await release();
  assert.deepEqual([...files.held], []);
  files.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:4" });
  await assert.rejects(devices.hold(device, context), refusal("identity-mismatch"));
  assert.deepEqual([...files.held], []);
});

Deno.test("hold() does not wait for the close of a dead device", async () => {
  const { files, clock, devices } = deps();
  files.hold = () => Promise.resolve({ deviceNumber: "7:3", path: "", release: () => new Promise(() => {}) });
  const lettingGo = (await devices.hold(device, context))();
  await clock.advance(2_000);
  await lettingGo;
});

Deno.test("hold() leaves no device open whose call ends in the moment in which it opens", async () => {
  const { files, devices } = deps();
  files.nodes.set(device.path, { kind: "block", deviceNumber: device.deviceNumber });
  const ended = new AbortController();
  const { hold } = files;
  files.hold = async (path, signal) => {
    const held = await hold.call(files, path, signal);
    ended.abort(new VolumeError("cancelled", "The client went away"));
    return held;
  };
  await assert.rejects(
    devices.hold(device, { ...context, signal: ended.signal }),
    refusal("cancelled", /went away/),
  );
  assert.equal(files.held.size, 0);
});

Deno.test("hasFilesystem() goes by what the kernel shows of ext4 and xfs, by the device's name", async () => {
  const { files, devices } = deps();
  files.folders.set("/sys/fs/xfs/dm-3", ["error", "log"]);
  assert.equal(await devices.hasFilesystem({ path: "/dev/dm-3", deviceNumber: "253:3" }), true);
  assert.equal(await devices.hasFilesystem(device), false);
});
