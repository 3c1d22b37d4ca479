import type { DiskGuard, ImagePlace } from "../../volume/ports/ports.ts";
import { type Fragment, ros } from "./command.ts";
import { fileName, holding } from "../store/queries.ts";

/** That no disk is in the slot, and none uses an image whose path holds the text. */
export function noDisk(slot: string, part: string): Fragment {
  return ros`[:len [/disk find where slot=${slot} or file-path~${holding(part)}]]=0`;
}

/** That no disk uses an image whose path holds the text. */
export function noDiskOn(part: string): Fragment {
  return ros`[:len [/disk find where file-path~${holding(part)}]]=0`;
}

/** That the disk is there with exactly that comment. */
export function diskAsGuarded(guard: DiskGuard): Fragment {
  return ros`[:len [/disk find where slot=${guard.id} and comment=${guard.comment}]]=1`;
}

/** That nothing is at the path. */
export function noFile(path: string): Fragment {
  return ros`[:len [/file find where name=${fileName(path)}]]=0`;
}

/** That a file is at the path. */
export function oneFile(path: string): Fragment {
  return ros`[:len [/file find where name=${fileName(path)}]]=1`;
}

/** That no path holds the text. */
export function noFileHolding(part: string): Fragment {
  return ros`[:len [/file find where name~${holding(part)}]]=0`;
}

/** That one subvolume of the file system, and no other, has that last name. */
export function oneSubvolume(label: string, name: string): Fragment {
  return ros`[:len [/disk/btrfs/subvolume/find where fs=${label} and name=${name}]]=1`;
}

/** What the path of every disk on that image holds. Its end only, as the whole takes room that the comments need. */
export function endOf({ path, subvolume }: ImagePlace): string {
  return subvolume === undefined ? `/${lastSegment(path)}` : `/${lastSegment(subvolume.path)}/`;
}

/** The last name of a path: by it RouterOS knows a subvolume as a parent. */
export function lastSegment(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
