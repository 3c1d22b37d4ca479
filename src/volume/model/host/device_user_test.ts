import assert from "node:assert/strict";
import { describeUser, type DeviceUser, inUse } from "./device_user.ts";

const device = "/dev/nvme0n1";
const process = { pid: 7, name: "postgres", pod: "0e6d2c2a-5b9f-4c57-9a3e-0f3f4d5c6b7a" };
const daemon = { pid: 9, name: "containerd", pod: undefined };

const users: readonly (readonly [what: string, user: DeviceUser, words: RegExp, fix: RegExp])[] = [
  [
    "a mount of a pod",
    { device, by: "mount", at: `/kubelet/pods/${process.pod}/volumes/v/mount` },
    /^\/dev\/nvme0n1 is mounted at \/kubelet\/pods\//,
    /^delete the pod with uid 0e6d2c2a-/,
  ],
  ["a mount of a person", { device, by: "mount", at: "/mnt" }, /mounted at \/mnt$/, /^unmount it$/],
  [
    "a mount in a pod's mount namespace",
    { device, by: "namespace", at: "/data", process },
    /mounted at \/data in the mount namespace of process 7 \(postgres\) of the pod with uid 0e6d2c2a-/,
    /^delete that pod$/,
  ],
  [
    "a mount in a service's mount namespace",
    { device, by: "namespace", at: "/data", process: daemon },
    /of process 9 \(containerd\)$/,
    /^restart the service of process 9, or unmount it there: nsenter -t 9 -m umount PATH$/,
  ],
  [
    "a mount in the host's mount namespace",
    { device, by: "namespace", at: "/data", process: { pid: 1, name: "systemd", pod: undefined } },
    /of process 1 \(systemd\)$/,
    /^unmount it on the host: nsenter -t 1 -m umount PATH$/,
  ],
  ["a process", { device, by: "process", process: daemon }, /is open: process 9/, /^end that process$/],
  [
    "a file of a file system that was unmounted lazily",
    { device, by: "file", file: "/log", process, isMounted: false },
    /^process 7 .* uses \/log of the file system on \/dev\/nvme0n1, which was unmounted lazily$/,
    /^delete that pod$/,
  ],
  [
    "LVM",
    { device, by: "layer", layer: "/dev/dm-3", words: ["$(reboot)-root", "LVM"] },
    /this node itself uses \/dev\/nvme0n1, by \/dev\/dm-3 /,
    /vgchange -an VG, and keep the node out/,
  ],
  [
    "the host's multipath",
    { device, by: "layer", layer: "/dev/dm-3", words: ["mpatha", "mpath"] },
    /by \/dev\/dm-3 \(mpatha, mpath\)/,
    /multipath -f \/dev\/dm-3/,
  ],
  [
    "RAID on a partition",
    { device: `${device}p1`, by: "layer", layer: "/dev/md127", words: ["raid1"] },
    /uses \/dev\/nvme0n1p1, by \/dev\/md127 \(raid1\)/,
    /mdadm --stop \/dev\/md127/,
  ],
  [
    "swap",
    { device: `${device}p2`, by: "swap" },
    /this node swaps to \/dev\/nvme0n1p2$/,
    /swapoff \/dev\/nvme0n1p2/,
  ],
  [
    "a loop device",
    { device, by: "loop", loop: "/dev/loop1" },
    /\/dev\/loop1 on top/,
    /losetup -d \/dev\/loop1/,
  ],
  [
    "a file system that nothing shows",
    { device, by: "superblock", filesystem: "xfs", hidden: [] },
    /^the xfs of \/dev\/nvme0n1 lives on without a mount that any process shows$/,
    /fsfreeze -u/,
  ],
  [
    "a file system that a namespace may have which was not searched",
    { device, by: "superblock", filesystem: "xfs", hidden: ["mnt:[4] at /run/ns/x"] },
    /could not be searched: mnt:\[4\] at \/run\/ns\/x$/,
    /nsenter --mount=/,
  ],
  [
    "nobody that can be found",
    { device, by: "claim", searched: "everything" },
    /cannot be opened exclusively, and its user was not found; searched: everything$/,
    /ZFS, DRBD/,
  ],
];

for (const [what, user, words, fix] of users) {
  Deno.test(`describeUser() names ${what}, and what ends it`, () => {
    const described = describeUser(user);
    assert.match(described.words, words);
    assert.match(described.fix, fix);
    assert.doesNotMatch(described.fix, /reboot\)/, "no command has a name that a pod wrote");
  });
}

Deno.test("inUse() names the certain users first, three at most, and each way to end it once", () => {
  const unseen: DeviceUser = { device, by: "unseen", what: "process 3 (x), which cannot be looked into" };
  const open = (pid: number): DeviceUser => ({ device, by: "process", process: { ...daemon, pid } });
  const error = inUse(
    [unseen, open(4), open(5), open(6), open(7)],
    (words) => `Cannot unstage the volume because ${words}: volume=pvc-1`,
  );
  assert.equal(error.kind, "in-use");
  assert.equal(
    error.message,
    "Cannot unstage the volume because /dev/nvme0n1 is open: process 4 (containerd), and /dev/nvme0n1 is open: " +
      "process 5 (containerd), and /dev/nvme0n1 is open: process 6 (containerd), and 2 more: volume=pvc-1; end that process",
  );
});

Deno.test("describeUser() keeps what a tenant has named in one line, and short", () => {
  const at = `/data\nCannot unstage: all is well\n${"x".repeat(4096)}`;
  const { words } = describeUser({ device, by: "namespace", at, process });
  assert.ok(words.length < 400 && !words.includes("\n"), words);
});
