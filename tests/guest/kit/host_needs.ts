import { findProgram } from "../../../tools/host_command.ts";

/** A program and its Debian package. */
type Need = readonly [program: string, debianPackage: string];

/** The programs that the kit runs on the host. */
const needs: readonly Need[] = [
  ["qemu-system-x86_64", "qemu-system-x86"],
  ["setpriv", "util-linux"],
  ["apt-get", "apt"],
  ["dpkg-deb", "dpkg"],
  ["strip", "binutils"],
  ["xz", "xz-utils"],
  ["zstd", "zstd"],
  ["depmod", "kmod"],
  ["modprobe", "kmod"],
  ["ldd", "libc-bin"],
];

/** The programs that the guest needs from the host; others are optional. */
export const guestPrograms: readonly Need[] = [
  ["busybox", "busybox-static"],
  ["dash", "dash"],
  ["bash", "bash"],
  ["sed", "sed"],
  ["socat", "socat"],
  ["kmod", "kmod"],
  ["ip", "iproute2"],
  ["ss", "iproute2"],
  ["jq", "jq"],
  ["nvme", "nvme-cli"],
  ["dmsetup", "dmsetup"],
  ["cryptsetup", "cryptsetup-bin"],
  ...listed("e2fsprogs", "mkfs.ext4 mke2fs e2fsck fsck.ext4 resize2fs tune2fs dumpe2fs debugfs"),
  ...listed("xfsprogs", "mkfs.xfs xfs_growfs xfs_logprint xfs_repair xfs_io xfs_db"),
  ...listed("btrfs-progs", "mkfs.btrfs btrfs"),
  ...listed("mount", "mount umount losetup"),
  ...listed(
    "util-linux",
    "blkid blockdev findmnt lsblk wipefs fstrim fsfreeze mountpoint nsenter unshare setsid flock",
  ),
  ...listed("util-linux", "setpriv prlimit dmesg"),
  ...listed("coreutils", "stat dd cat head tail truncate timeout sync md5sum sha256sum mktemp od seq sleep"),
  ...listed("coreutils", "base64 cp mv rm ls ln mkdir mkfifo rmdir stty touch tr wc"),
  ...listed("nfs-kernel-server", "exportfs rpc.nfsd rpc.mountd"),
  ["cmp", "diffutils"],
  ...listed("procps", "ps pgrep pkill"),
];

function listed(debianPackage: string, programs: string): Need[] {
  return programs.split(" ").map((program) => [program, debianPackage]);
}

/** The Debian packages that this machine lacks for the kit; none when guests can be built and run. */
export function missingPackages(): string[] {
  const missing = [...needs, ...guestPrograms].filter(([program]) => findProgram(program) === undefined);
  return [...new Set(missing.map(([, debianPackage]) => debianPackage))].sort();
}

/** Why no guest can run here, for people; undefined when one can. */
export function hindrance(): string | undefined {
  if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") return "guests need Linux on x86-64";
  const missing = missingPackages();
  return missing.length === 0
    ? undefined
    : `guests need packages that are not installed: ${missing.join(" ")}`;
}
