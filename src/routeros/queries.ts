import { type Fragment, joined, ros } from "./command.ts";

/** What of a disk a listing needs: the frame of thousands of disks stays small. */
const diskKeys =
  ros`slot,type,size,file-path,comment,nvme-tcp-export,nvme-tcp-server-port,mounted,mount-point,fs,free,state`;

/** The same, with the key that RouterOS before 7.21 does not know, and may refuse. */
const diskKeysWithNqn = ros`${diskKeys},nvme-tcp-server-nqn`;

/** The disk in a slot, every disk on one of the images, and the mounted pools. */
export function disksQuery(slot: string, imagePaths: readonly string[]): Fragment {
  const terms = [
    ros`slot=${slot}`,
    ...imagePaths.map((path) => ros`file-path=${path}`),
    ros`mounted`,
  ];
  return ros`/disk print detail as-value where ${joined(terms, " or ")}`;
}

/** The mounted pools. */
export const poolsQuery: Fragment = ros`/disk print detail as-value where mounted`;

/** Every file-backed disk and the mounted pools; with `slot` also whatever is in that slot. */
export function allDisksQuery(supportsNqn: boolean, slot?: string): Fragment {
  const terms = [ros`type=${"file"}`, ros`mounted`];
  if (slot !== undefined) terms.push(ros`slot=${slot}`);
  return ros`/disk print detail as-value proplist=${keys(supportsNqn)} where ${joined(terms, " or ")}`;
}

/** The file-backed disks whose slot matches a regular expression. */
export function someDisksQuery(supportsNqn: boolean, slotPattern: string): Fragment {
  return ros`/disk print detail as-value proplist=${
    keys(supportsNqn)
  } where type=${"file"} and slot~${slotPattern}`;
}

function keys(supportsNqn: boolean): Fragment {
  return supportsNqn ? diskKeysWithNqn : diskKeys;
}

/** Those of the files that exist. Never without a list of keys, else the contents of small files come along. */
export function filesQuery(paths: readonly string[]): Fragment {
  const terms = paths.map((path) => ros`name=${fileName(path)}`);
  return ros`/file print detail as-value proplist=name,type,size where ${joined(terms, " or ")}`;
}

/** Version and uptime. */
export const resourceQuery: Fragment = ros`/system resource print as-value`;

/** The installed packages. */
export const packagesQuery: Fragment = ros`/system package print detail as-value`;

/** A path as `/file` spells it: without the leading slash. */
export function fileName(path: string): string {
  return path.replace(/^\/+/, "");
}

/** A path as the rest of the driver spells it: with one leading slash. */
export function imagePathOf(path: string): string {
  return `/${fileName(path)}`;
}
