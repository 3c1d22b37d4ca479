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
  const openBy = async () => {
    const asked = devices.openBy([device], context);
    await clock.advance(0);
    return await asked;
  };
  const hiddenUsers = async () => {
    const asked = devices.hiddenUsers([device], context);
    await clock.advance(0);
    return await asked;
  };
  return { files, clock, devices, openBy, hiddenUsers };
}

const qemu = { pid: 20, name: "qemu", pod: undefined };

Deno.test("layers() names what the node has made on top of a device and of its partitions", async () => {
  const { files, devices } = deps();
  const own = { path: "/dev/nvme0n1", deviceNumber: "259:3" };
  const folder = "/sys/dev/block/259:3";
  files.folders.set(folder, ["holders", "nvme0n1p1", "queue", "size"]);
  for (const [name, text] of [["partition", "1"], ["dev", "259:4"], ["size", "2048"]]) {
    files.texts.set(`${folder}/nvme0n1p1/${name}`, text!);
  }
  files.folders.set(`${folder}/holders`, ["dm-1"]);
  files.folders.set("/sys/dev/block/259:4/holders", ["md127", "bcache0"]);
  files.texts.set("/sys/block/dm-1/dm/name", "vg-root");
  files.texts.set("/sys/block/dm-1/dm/uuid", "LVM-x7Yq");
  files.texts.set("/sys/block/md127/md/level", "raid1");
  const nodes = [own, ...await devices.partitions(own)];
  assert.deepEqual(await devices.layers(nodes), [
    { device: "/dev/nvme0n1", by: "layer", layer: "/dev/dm-1", words: ["vg-root", "LVM"] },
    { device: "/dev/nvme0n1p1", by: "layer", layer: "/dev/bcache0", words: [] },
    { device: "/dev/nvme0n1p1", by: "layer", layer: "/dev/md127", words: ["raid1"] },
  ]);
  assert.deepEqual(await devices.layers([device]), []);
});

Deno.test("layers() names the device or partition to which the node swaps, by whatever path", async () => {
  const { files, devices } = deps();
  files.texts.set(
    "/proc/swaps",
    "Filename\t\tType\t\tSize\n/swapfile file 1 0 -2\n/dev/mapper/x  partition\t1\t0\t-3\n/dev/vda2 partition 1 0 -4",
  );
  assert.deepEqual(await devices.layers([device]), []);
  files.nodes.set("/dev/mapper/x", { kind: "block", deviceNumber: "7:3" });
  assert.deepEqual(await devices.layers([device]), [{ device: "/dev/loop3", by: "swap" }]);
  assert.deepEqual(await devices.layers([{ path: "/host/vda2", deviceNumber: "254:2" }]), [
    { device: "/host/vda2", by: "swap" },
  ]);
});

Deno.test("openBy() is empty when no descriptor refers to the device", async () => {
  assert.deepEqual(await deps().openBy(), []);
});

Deno.test("openBy() names the process with a descriptor on the device, by whatever path it opened it", async () => {
  const { files, openBy } = deps();
  files.links.set("/proc/20/fd/5", "/container/xvda (deleted)");
  files.nodes.set("/proc/20/fd/5", { kind: "block", deviceNumber: "7:3" });
  assert.deepEqual(await openBy(), [{ device: "/dev/loop3", by: "process", process: qemu }]);
});

Deno.test("openBy() names the process with a descriptor on a partition, and the partition", async () => {
  const { files, clock, devices } = deps();
  files.nodes.set("/proc/20/fd/5", { kind: "block", deviceNumber: "259:9" });
  const asked = devices.openBy([device, { path: "/dev/loop3p1", deviceNumber: "259:9" }], context);
  await clock.advance(0);
  assert.deepEqual(await asked, [{ device: "/dev/loop3p1", by: "process", process: qemu }]);
});

Deno.test("openBy() ignores another device, and this process itself", async () => {
  const { files, openBy } = deps();
  files.nodes.set("/proc/20/fd/5", { kind: "block", deviceNumber: "7:4" });
  files.folders.set("/proc/1/fd", ["9"]);
  files.links.set("/proc/1/fd/9", "/dev/loop3");
  files.nodes.set("/proc/1/fd/9", { kind: "block", deviceNumber: "7:3" });
  assert.deepEqual(await openBy(), []);
});

Deno.test("openBy() ignores a process that ended meanwhile", async () => {
  const { files, openBy } = deps();
  files.folders.delete("/proc/20/fd");
  assert.deepEqual(await openBy(), []);
});

for (const unreadable of ["/proc/20/fd", "/proc/20/fd/5"]) {
  Deno.test(`openBy() is uncertain of a process of which ${unreadable} cannot be read`, async () => {
    const { files, openBy } = deps();
    const refuse = (path: string) => {
      if (path === unreadable) throw new VolumeError("unavailable", "errno=13");
    };
    const { list, readLink } = files;
    files.list = (path) => (refuse(path), list.call(files, path));
    files.readLink = (path) => (refuse(path), readLink.call(files, path));
    const what = "process 20 (qemu), which cannot be looked into";
    assert.deepEqual(await openBy(), [{ device: "/dev/loop3", by: "unseen", what }]);
  });
}

for (const missing of ["/proc", "/sys/block"]) {
  Deno.test(`openBy() is uncertain when ${missing} cannot be listed`, async () => {
    const { files, openBy } = deps();
    files.folders.delete(missing);
    assert.deepEqual(await openBy(), [
      { device: "/dev/loop3", by: "unseen", what: `${missing} cannot be read` },
    ]);
  });
}

Deno.test("openBy() names a loop device on top", async () => {
  const { files, openBy } = deps();
  files.folders.set("/sys/block", ["loop0", "loop1", "vda"]);
  files.texts.set("/sys/block/loop1/loop/backing_file", "/kubelet/dev/pod");
  files.nodes.set("/kubelet/dev/pod", { kind: "block", deviceNumber: "7:3" });
  assert.deepEqual(await openBy(), [{ device: "/dev/loop3", by: "loop", loop: "/dev/loop1" }]);
});

Deno.test("openBy() does not touch the file of a loop device that lies on a file system", async () => {
  const { files, openBy } = deps();
  files.folders.set("/sys/block", ["loop1", "loop2"]);
  files.texts.set("/sys/block/loop1/loop/backing_file", "/far/image");
  files.texts.set("/sys/block/loop2/loop/backing_file", "/kubelet/dev/pods");
  const asked: string[] = [];
  files.info = (path) => void asked.push(path) as undefined;
  assert.deepEqual(await openBy(), []);
  assert.deepEqual(asked.filter((path) => !path.startsWith("/proc/")), []);
});

Deno.test("openBy() prefers a certain holder to an uncertain one", async () => {
  const { files, openBy } = deps();
  const { list } = files;
  files.list = (path) => {
    if (path === "/proc/20/fd") throw new VolumeError("unavailable", "errno=13");
    return list.call(files, path);
  };
  files.folders.set("/proc", ["20", "30"]);
  files.folders.set("/proc/30/fd", ["3"]);
  files.links.set("/proc/30/fd/3", "/dev/loop3");
  files.nodes.set("/proc/30/fd/3", { kind: "block", deviceNumber: "7:3" });
  const process = { pid: 30, name: "ended meanwhile", pod: undefined };
  assert.deepEqual(await openBy(), [{ device: "/dev/loop3", by: "process", process }]);
});

Deno.test("openBy() has listed the processes, and read none, when other work has its first turn", async () => {
  const { files, devices, clock } = deps();
  const { list } = files;
  const listed: string[] = [];
  files.list = (path) => {
    listed.push(path);
    return list.call(files, path);
  };
  const asked = devices.openBy([device], context);
  await clock.advance(-1);
  assert.deepEqual(listed, ["/sys/block", "/proc"]);
  await clock.advance(1);
  assert.deepEqual(await asked, []);
  assert.deepEqual(listed, ["/sys/block", "/proc", "/proc/20/fd"]);
});

Deno.test("openBy() lets other work have its turn, and stops when the call is cancelled", async () => {
  const { files, devices, clock } = deps();
  const many = Array.from({ length: 1000 }, (_, i) => String(i));
  files.folders.set("/proc/20/fd", many);
  const controller = new AbortController();
  const asked = devices.openBy([device], { ...context, signal: controller.signal });
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
    files.nodes.set(device.path, { kind: "block", deviceNumber: device.deviceNumber });
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
    assert.deepEqual(processes.lines, outcome === "left" ? [] : ["blockdev --setro /proc/1/fd//dev/loop3"]);
  });
}

Deno.test("forgetReads() is of the device that is kept open meanwhile, and of no other one", async () => {
  const { files, clock } = deps();
  files.nodes.set(device.path, { kind: "block", deviceNumber: device.deviceNumber });
  const processes = new FakeProcesses();
  processes.script = () => files.held.has(device.path) ? 0 : 1;
  const devices = new SystemBlockDevices(processes, files, clock);
  await devices.forgetReads(provenDevice(device), context);
  assert.deepEqual(processes.lines, ["blockdev --flushbufs /proc/1/fd//dev/loop3"]);
  files.nodes.set(device.path, { kind: "block", deviceNumber: "7:9" });
  await assert.rejects(devices.forgetReads(provenDevice(device), context), refusal("identity-mismatch"));
  assert.deepEqual([processes.runs.length, files.held.size], [1, 0]);
});

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

/** The process 20 in a mount namespace of its own. */
function inNamespace(table: string) {
  const all = deps();
  const { files } = all;
  files.links.set("/proc/self/ns/mnt", "mnt:[1]");
  files.links.set("/proc/self/root", "/");
  files.texts.set("/proc/self/comm", "rds-csi");
  files.links.set("/proc/20/ns/mnt", "mnt:[2]");
  files.links.set("/proc/20/root", "/");
  files.texts.set("/proc/20/mountinfo", `1 0 254:0 / / rw - ext4 /dev/vda rw\n${table}`);
  return all;
}

Deno.test("hiddenUsers() names a mount in another mount namespace, with the process in it and its pod", async () => {
  const { files, hiddenUsers } = inNamespace("7 1 7:3 / /my\\040data rw shared:7 - ext4 /dev/loop3 rw");
  files.texts.set(
    "/proc/20/cgroup",
    "0::/../../kubepods-burstable-pod0e6d2c2a_5b9f_4c57_9a3e_0f3f4d5c6b7a.slice/cri-containerd-1f.scope",
  );
  const process = { pid: 20, name: "qemu", pod: "0e6d2c2a-5b9f-4c57-9a3e-0f3f4d5c6b7a" };
  assert.deepEqual((await hiddenUsers()).users, [
    { device: "/dev/loop3", by: "namespace", at: "/my data", process },
  ]);
});

Deno.test("hiddenUsers() reads the mount table of a namespace once, and not the driver's own as another's", async () => {
  const { files, hiddenUsers } = inNamespace("");
  files.texts.set("/proc/self/mountinfo", "7 1 7:3 / /data rw - ext4 /dev/loop3 rw\n");
  files.folders.set("/proc", ["1", "20", "21", "22", "self"]);
  for (const [pid, namespace] of [["21", "2"], ["22", "1"]]) {
    files.links.set(`/proc/${pid}/ns/mnt`, `mnt:[${namespace}]`);
    files.links.set(`/proc/${pid}/root`, "/");
  }
  const read: string[] = [];
  const { readText } = files;
  files.readText = (path) => {
    if (path.endsWith("mountinfo")) read.push(path);
    return readText.call(files, path);
  };
  assert.deepEqual((await hiddenUsers()).users, []);
  assert.deepEqual(read, ["/proc/self/mountinfo", "/proc/20/mountinfo"]);
});

Deno.test("hiddenUsers() names a process with a file on the file system, and says whether any table shows it", async () => {
  const { files, hiddenUsers } = inNamespace("");
  files.nodes.set("/proc/20/fd/5", { kind: "file", filesystemNumber: "7:3" });
  files.folders.set("/sys/fs/ext4/loop3", []);
  const user = { device: "/dev/loop3", by: "file", file: "/some/file", process: qemu };
  assert.deepEqual((await hiddenUsers()).users, [{ ...user, isMounted: false }]);
  files.texts.set("/proc/self/mountinfo", "7 1 7:3 / /data rw - ext4 /dev/loop3 rw\n");
  assert.deepEqual((await hiddenUsers()).users, [{ ...user, isMounted: true }]);
});

Deno.test("hiddenUsers() names a file system that lives where nothing shows why, and what was not searched", async () => {
  const { files, hiddenUsers } = inNamespace("");
  assert.deepEqual(await hiddenUsers(), {
    users: [],
    searched: "2 mount namespaces and 2 processes",
  });
  files.folders.set("/sys/fs/xfs/loop3", ["error"]);
  const lives = { device: "/dev/loop3", by: "superblock", filesystem: "xfs" };
  assert.deepEqual((await hiddenUsers()).users, [{ ...lives, hidden: [] }]);
  // A namespace that is searched through its process is pinned as well; another one by a file and by a descriptor.
  files.texts.set(
    "/proc/20/mountinfo",
    "8 1 0:4 mnt:[2] /run/ns/two rw - nsfs nsfs rw\n9 1 0:4 mnt:[3] /run/ns/three rw - nsfs nsfs rw\n" +
      "10 1 0:4 net:[4] /run/ns/net rw - nsfs nsfs rw",
  );
  files.links.set("/proc/20/fd/0", "mnt:[5]");
  files.folders.set("/proc", ["1", "20", "30", "self"]);
  const { readLink } = files;
  files.readLink = (path) => {
    if (path === "/proc/30/ns/mnt") throw new VolumeError("unavailable", "errno=13");
    return readLink.call(files, path);
  };
  const { readText } = files;
  files.readText = (path) => {
    if (path === "/proc/30/mountinfo") throw new VolumeError("unavailable", "errno=13");
    return readText.call(files, path);
  };
  files.texts.set("/proc/20/stat", "20 (umount) D 1 20 20");
  const hidden = [
    "mnt:[3] at /run/ns/three",
    "mnt:[5] at /proc/20/fd/0",
    "process 20 (umount), which waits in the kernel",
    "1 processes, such as /proc/30",
  ];
  assert.deepEqual((await hiddenUsers()).users, [{ ...lives, hidden }]);
  assert.match((await hiddenUsers()).searched, /^3 mount namespaces and 3 processes, of which 1 cannot be/);
});

for (
  const [what, script, expected] of [
    ["answers", () => ({ code: 0 }), false],
    ["refuses", () => ({ code: 1, stderr: "dd: error reading '/dev/loop3': Input/output error\n" }), true],
    [
      "cannot be opened",
      () => ({ code: 1, stderr: "dd: failed to open '/dev/loop3': Input/output error" }),
      undefined,
    ],
    ["does not answer in time", () => {
      throw new VolumeError("deadline", "Cannot finish dd within 2 s");
    }, undefined],
  ] as const
) {
  Deno.test(`refusesReads() of a device that ${what}: ${expected}`, async () => {
    const { files, clock } = deps();
    const processes = new FakeProcesses();
    processes.script = script;
    const devices = new SystemBlockDevices(processes, files, clock);
    assert.equal(await devices.refusesReads(device, context), expected);
    assert.deepEqual(processes.lines, [
      "dd if=/dev/loop3 of=/dev/null bs=4096 count=1 iflag=direct status=none",
    ]);
  });
}

Deno.test("filesystemErrors() is the kernel's count of ext4's errors, and unknown without a number", async () => {
  const { files, devices } = deps();
  assert.equal(await devices.filesystemErrors(device), undefined);
  for (const [text, expected] of [["0", 0], ["12\n", 12], ["x", undefined]] as const) {
    files.texts.set("/sys/fs/ext4/loop3/errors_count", text);
    assert.equal(await devices.filesystemErrors(device), expected);
  }
});
