import { isScratchName } from "./probing.ts";

/** What a client of the router may change. */
export interface OwnArea {
  /** Where it may make files, with leading slash. */
  readonly basePaths: readonly string[];
  /** Hashes of the clusters that it works for; undefined when nobody has said, and any will do. */
  readonly clusterHashes: readonly string[] | undefined;
}

/** Slots that it makes. */
const ownSlot = /^[a-z0-9-]{1,32}$/;
/** Slots of an earlier driver, which it may change and remove. */
const earlierSlot = /^pvc-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Volumes and snapshots carry the hash of their cluster: the only thing that tells whose they are. */
const hashedName =
  /^(?:snap-[0-9a-f]{28}\.[a-z0-9-]+\.[0-9A-Za-z-]+\.[nb]|[a-z0-9-]+)\.([0-9a-f]{8})(?:\.img)?(?:\.part)?$/;

/** Whether a client could have chosen this slot, or, for one that is there, whether it may be its own. */
export function isOwnSlot(slot: string, isNew: boolean): boolean {
  return ownSlot.test(slot) || isScratchName(slot) || !isNew && earlierSlot.test(slot);
}

/**
 * Whether a path belongs to a client: it lies in a base path, or in something outside that carries the hash of a
 * cluster. Whatever carries the hash of another cluster never does.
 *
 * @param path with leading slash
 */
export function isOwnPath(path: string, { basePaths, clusterHashes }: OwnArea): boolean {
  const [, _mountPoint, ...names] = path.split("/");
  if (names.includes("..")) return false;
  const hashes = names.flatMap((name) => hashedName.exec(name)?.[1] ?? []);
  if (clusterHashes !== undefined && hashes.some((hash) => !clusterHashes.includes(hash))) return false;
  if (hashes.length > 0 || names.some(isScratchName)) return true;
  return basePaths.some((base) => path === base || path.startsWith(`${base}/`));
}

/** What says in a comment that somebody's disk was imported, and for which cluster. */
const importRecord = /\{rds1 c=([0-9a-f]{8}) [^{}]*\bs=i:[0-9a-f]{16}[^{}]*\}/;

/** Whether a client has imported the disk of that comment: it may change that, and never remove it. */
export function isImportRecord(comment: string, { clusterHashes }: OwnArea): boolean {
  const hash = importRecord.exec(comment)?.[1];
  return hash !== undefined && (clusterHashes === undefined || clusterHashes.includes(hash));
}
