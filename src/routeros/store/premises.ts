import type { Premise } from "../../volume/ports/premise.ts";
import { type Fragment, joined, ros } from "../console/command.ts";
import { fileName, holding } from "./queries.ts";

/** Where a premise goes in a statement. */
type Part =
  /** Of the disk that is changed or removed. */
  | { readonly own: Fragment }
  /** Of any disk: none may match. */
  | { readonly noDisk: Fragment }
  /** A question of its own. */
  | { readonly condition: Fragment }
  /** Nothing that the router is asked: no statement waits for it. */
  | "unasked";

/** The conditions of a statement, in the order of their premises. */
export interface Conditions {
  /** What the disk has to be. */
  readonly own: readonly Fragment[];
  /** What has to hold before. */
  readonly before: readonly Fragment[];
}

/** @param id the slot that is written */
export function conditionsOf(premises: readonly Premise[], id: string): Conditions {
  const own: Fragment[] = [];
  const before: Fragment[] = [];
  const noDisk: Fragment[] = [];
  for (const part of premises.map((premise) => partOf(premise, id))) {
    if (part === "unasked") continue;
    if ("own" in part) own.push(part.own);
    else if ("condition" in part) before.push(part.condition);
    else noDisk.push(part.noDisk);
  }
  // One question for all of them, as each takes a router time: of no kind is there any.
  const free = noDisk.length === 0 ? [] : [none(ros`/disk find where ${joined(noDisk, " or ")}`)];
  return { own, before: [...free, ...before] };
}

function partOf(premise: Premise, id: string): Part {
  switch (premise.is) {
    case "comment":
      return { own: ros`comment=${premise.text}` };
    case "path":
      return { own: ros`file-path=${premise.text}` };
    case "path-holds":
      return { own: pathHolds(premise.text) };
    case "size":
      return { own: ros`size=${premise.bytes}` };
    case "exported":
      return { own: ros`nvme-tcp-export` };
    case "not-exported":
      return { own: ros`!nvme-tcp-export` };
    case "not-mounted":
      return { own: ros`!mounted` };
    case "slot-free":
      return { noDisk: ros`slot=${id}` };
    case "unused":
      return { noDisk: pathHolds(premise.text) };
    case "label-free":
      return { noDisk: ros`(${ofVolumes(premise.label)})` };
    case "alone":
      return { condition: one(ros`/disk find where ${pathHolds(premise.text)}`) };
    case "no-files":
      return { condition: none(ros`/file find where name~${holding(premise.text)}`) };
    case "image-there":
      return { condition: oneFile(premise.path, premise.bytes) };
    case "pool-mounted":
      return { condition: onePool(premise) };
    case "up-for":
      return "unasked";
  }
}

/** That a pool is mounted there. Its label was read some time ago: what is mounted now may be another file system. */
export function onePool(
  { mountPoint, label }: Omit<Extract<Premise, { is: "pool-mounted" }>, "is">,
): Fragment {
  const mounted = ros`/disk find where mounted and mount-point=${mountPoint}`;
  return one(label === undefined ? mounted : ros`${mounted} and fs-label=${label}`);
}

/** Of a disk: that its image path holds the text. */
function pathHolds(text: string): Fragment {
  return ros`file-path~${holding(text)}`;
}

/** Of a disk: that it is a volume whose own bytes say that it is a file system of that label. */
export function ofVolumes(label: string): Fragment {
  return ros`type=${"file"} and fs-label=${label}`;
}

/** That nothing is at the path. */
export function noFile(path: string): Fragment {
  return none(ros`/file find where name=${fileName(path)}`);
}

/** That a file is at the path, of that size where one is given. */
export function oneFile(path: string, sizeBytes?: bigint): Fragment {
  const named = ros`/file find where name=${fileName(path)}`;
  return one(sizeBytes === undefined ? named : ros`${named} and size=${sizeBytes}`);
}

/** That the router finds nothing. */
export function none(find: Fragment): Fragment {
  return ros`[:len [${find}]]=0`;
}

/** That the router finds exactly one item. */
export function one(find: Fragment): Fragment {
  return ros`[:len [${find}]]=1`;
}
