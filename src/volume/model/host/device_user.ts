import { VolumeError } from "../../errors.ts";
import type { FilesystemType } from "../capabilities.ts";

/** A process of this node. */
export interface HostProcess {
  readonly pid: number;
  /** The name that it gave itself. */
  readonly name: string;
  /** The uid of its pod, by its cgroup; undefined when it is in none, or in the driver's own. */
  readonly pod: string | undefined;
}

/** One use of a block device on this node; `device` is the path of the device, or of the partition of it that is used. */
export type DeviceUser = { readonly device: string } & DeviceUse;

type DeviceUse =
  /** Mounted, or its node bound, in the driver's own mount namespace. */
  | { readonly by: "mount" | "bind"; readonly at: string }
  /** Mounted in another mount namespace, which that process is in. */
  | { readonly by: "namespace"; readonly at: string; readonly process: HostProcess }
  /** A process has it open. */
  | { readonly by: "process"; readonly process: HostProcess }
  /** A process uses a file of its file system, which no mount table may show. */
  | { readonly by: "file"; readonly file: string; readonly process: HostProcess; readonly isMounted: boolean }
  /** Perhaps: a process that cannot be looked into, or all of them. */
  | { readonly by: "unseen"; readonly what: string }
  /** This node's kernel has made that device of it: LVM, md, multipath, bcache. */
  | { readonly by: "layer"; readonly layer: string; readonly words: readonly string[] }
  | { readonly by: "loop"; readonly loop: string }
  | { readonly by: "swap" }
  /**
   * Its file system lives, and nothing shows why: it is frozen, or in a mount namespace without a process. `hidden` are
   * the places of such namespaces, and processes that cannot be looked into: where there are any, they may have it.
   */
  | { readonly by: "superblock"; readonly filesystem: FilesystemType; readonly hidden: readonly string[] }
  /** It does not open exclusively, and nothing above says why. */
  | { readonly by: "claim"; readonly searched: string };

/** Whether it is known that the user has the device. */
export function isCertain({ by }: DeviceUser): boolean {
  return by !== "unseen";
}

/** A user for people, and what ends the use. */
export function describeUser(user: DeviceUser): { readonly words: string; readonly fix: string } {
  const { device } = user;
  switch (user.by) {
    case "mount":
    case "bind": {
      const how = user.by === "mount" ? "mounted" : "bound";
      return {
        words: `${device} is ${how} at ${shown(user.at)}`,
        fix: `${ofPod(podOfPath(user.at))}unmount it`,
      };
    }
    case "namespace": {
      const where = `${shown(user.at)} in the mount namespace of ${nameOf(user.process)}`;
      return { words: `${device} is mounted at ${where}`, fix: leavingFix(user.process) };
    }
    case "process":
      return { words: `${device} is open: ${nameOf(user.process)}`, fix: endOf(user.process) };
    case "file": {
      const how = user.isMounted ? "" : ", which was unmounted lazily";
      return {
        words: `${nameOf(user.process)} uses ${shown(user.file)} of the file system on ${device}${how}`,
        fix: endOf(user.process),
      };
    }
    case "unseen":
      return {
        words: `${device} is perhaps open: ${user.what}`,
        fix: "look at it on the node: fuser -v DEVICE",
      };
    case "layer":
      return {
        words: `this node itself uses ${device}, by ${layerName(user)}, ` +
          "which it made by what is written in the volume",
        fix: `on the node, ${layerFix(user)}, and keep the node out: see the guide on raw block volumes`,
      };
    case "loop":
      return {
        words: `${device} is open: ${user.loop} on top of it`,
        fix: `on the node, losetup -d ${user.loop}, unless a pod still has it`,
      };
    case "swap":
      return { words: `this node swaps to ${device}`, fix: `on the node, swapoff ${device}` };
    case "superblock":
      return describeSuperblock(device, user.filesystem, user.hidden);
    case "claim":
      return {
        words:
          `${device} cannot be opened exclusively, and its user was not found; searched: ${user.searched}`,
        fix: "a program in the kernel may have it: ZFS, DRBD or an exported target",
      };
  }
}

/** A layer's name for people, such as `/dev/dm-0 (vg-root, LVM)`, `/dev/md127 (raid1)`. */
export function layerName(
  { layer, words }: { readonly layer: string; readonly words: readonly string[] },
): string {
  return words.length === 0 ? layer : `${layer} (${words.join(", ")})`;
}

const maxShown = 200;

/** At most so many users are named; the command for one volume shows all. */
const maxNamed = 3;

/**
 * The error for a device that is in use. It cannot be made without a user to name.
 *
 * @param text the message for the users' words; what ends the use is appended
 */
export function inUse(
  users: readonly [DeviceUser, ...DeviceUser[]],
  text: (words: string) => string,
): VolumeError {
  const sorted = [...users.filter(isCertain), ...users.filter((user) => !isCertain(user))];
  const named = sorted.slice(0, maxNamed).map(describeUser);
  const more = sorted.length > named.length ? [`${sorted.length - named.length} more`] : [];
  const words = [...named.map((each) => each.words), ...more].join(", and ");
  const fixes = [...new Set(named.map(({ fix }) => fix))].join("; ");
  return new VolumeError("in-use", `${text(words)}; ${fixes}`);
}

/** The list, if there is one to name. */
export function isInUse(users: readonly DeviceUser[]): users is readonly [DeviceUser, ...DeviceUser[]] {
  return users.length > 0;
}

/** Tenants choose the names of processes and paths: in one line, and not at any length. Outputs filter the rest. */
function shown(text: string): string {
  const line = text.replaceAll(/\s/g, " ");
  return line.length > maxShown ? `${line.slice(0, maxShown)}…` : line;
}

function nameOf({ pid, name, pod }: HostProcess): string {
  return `process ${pid} (${shown(name)})${pod === undefined ? "" : ` of the pod with uid ${pod}`}`;
}

function leavingFix({ pid, pod }: HostProcess): string {
  if (pod !== undefined) return "delete that pod";
  if (pid === 1) return "unmount it on the host: nsenter -t 1 -m umount PATH";
  return `restart the service of process ${pid}, or unmount it there: nsenter -t ${pid} -m umount PATH`;
}

function endOf({ pod }: HostProcess): string {
  return pod === undefined ? "end that process" : "delete that pod";
}

function ofPod(pod: string | undefined): string {
  return pod === undefined ? "" : `delete the pod with uid ${pod}, or `;
}

function podOfPath(path: string): string | undefined {
  return /\/pods\/([0-9a-f-]{32,36})\//.exec(path)?.[1];
}

/** The names in it were written by a pod: no command may have them. */
function layerFix({ layer, words }: { readonly layer: string; readonly words: readonly string[] }): string {
  if (words.includes("LVM")) return "vgchange -an VG";
  if (words.includes("mpath")) return `multipath -f ${layer}`;
  if (layer.startsWith("/dev/md")) return `mdadm --stop ${layer}`;
  return layer.startsWith("/dev/dm-") ? `dmsetup remove ${layer}` : `end ${layer}`;
}

function describeSuperblock(device: string, filesystem: FilesystemType, hidden: readonly string[]) {
  const lives = `the ${filesystem} of ${device} lives on without a mount that any process shows`;
  if (hidden.length === 0) {
    return {
      words: lives,
      fix: "mount it on the node, thaw it (fsfreeze -u PATH) and unmount it, or reboot the node",
    };
  }
  return {
    words: `${lives}; a mount namespace may have it that could not be searched: ${shown(hidden.join(", "))}`,
    fix: "unmount it there (nsenter --mount=NAMESPACE umount PATH), or reboot the node",
  };
}
