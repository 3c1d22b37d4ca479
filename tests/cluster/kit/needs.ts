import { findProgram, goIsHere } from "../../guest/kit/host_command.ts";

/** A program and the Debian package that brings it. */
type Need = readonly [program: string, debianPackage: string];

const needs: readonly Need[] = [
  ["busybox", "busybox-static"],
  ["openssl", "openssl"],
  ["ssh-keyscan", "openssh-client"],
  ["bash", "bash"],
  ["apt-get", "apt"],
  ["dpkg-deb", "dpkg"],
  ["tar", "tar"],
  ["nice", "coreutils"],
  ["setpriv", "util-linux"],
  ["nsenter", "util-linux"],
  ["ip", "iproute2"],
  ["mount", "mount"],
  ["losetup", "mount"],
  ["mkfs.btrfs", "btrfs-progs"],
  ["mkfs.ext4", "e2fsprogs"],
  ["mkfs.xfs", "xfsprogs"],
];

/** File systems that the kernel has to know: of pods, of the router's pool, of volumes. */
const filesystems = ["overlay", "btrfs", "ext4", "xfs"];

/** Why no cluster can run here, in words; undefined when one can. */
export function hindrance(): string | undefined {
  if (Deno.build.os !== "linux") return "a cluster needs Linux";
  if (Deno.uid() !== 0) return "a cluster needs root, for mounts and containers";
  if (!isThere("/dev/loop-control")) return "a cluster needs loop devices (/dev/loop-control)";
  const known = Deno.readTextFileSync("/proc/filesystems").split(/\s+/);
  const unknown = filesystems.filter((name) => !known.includes(name));
  if (unknown.length > 0) return `a cluster needs a kernel with ${unknown.join(", ")}`;
  if (
    !/ \/sys\/fs\/cgroup(\/\S+)? rw\S* .*- cgroup2? /m.test(Deno.readTextFileSync("/proc/self/mountinfo"))
  ) {
    return "a cluster needs control groups that can be written to, at /sys/fs/cgroup";
  }
  const missing = needs.filter(([program]) => findProgram(program) === undefined).map(([, name]) => name);
  if (missing.length > 0) {
    return `a cluster needs packages that are not installed: ${[...new Set(missing)].join(" ")}`;
  }
  return goIsHere() ? undefined : "Go, which builds the cluster's programs, is not here";
}

function isThere(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
