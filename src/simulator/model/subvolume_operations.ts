import { Refusal } from "../refusal.ts";
import { normalisePath, parentOf } from "./paths.ts";
import type { Router } from "./router.ts";
import { fullNameOf, isRoot, nameOf, type Subvolume } from "./subvolumes.ts";

/** What `/disk/btrfs/subvolume add` says. */
export interface NewSubvolume {
  /** Label of the file system. */
  readonly filesystem: string;
  /** Path within the file system. */
  readonly name: string;
  /** Name or full name of the subvolume to make a snapshot of. */
  readonly parent: string | undefined;
  readonly readOnly: boolean;
}

/**
 * `/disk/btrfs/subvolume add`: makes an empty subvolume, or a snapshot of its parent.
 *
 * @throws {Refusal} when it cannot; then nothing has changed.
 */
export function addSubvolume(router: Router, { filesystem, name, parent, readOnly }: NewSubvolume): void {
  const { files, subvolumes, knobs } = router;
  const mountPoint = mountPointOf(router, filesystem);
  if (knobs.subvolumeNames === "flat" && name.includes("/")) throw Refusal.noMatch("name");
  const path = `${mountPoint}/${normalisePath(name)}`;
  if (files.find(path) !== undefined) throw Refusal.alreadyHave("subvolume");
  if (!files.isDirectory(parentOf(path))) throw Refusal.noSuchDirectory(parentOf(path));
  router.assertWritable(path);
  router.assertSpace(path, 0n);
  const source = parent === undefined ? undefined : getSource(router, mountPoint, parent);
  if (source === undefined) files.makeSubvolume(path);
  else files.makeSnapshot(source.path, path, readOnly);
  if (readOnly && source === undefined) router.backing.setReadOnly(path, true);
  subvolumes.add(path, readOnly, source);
}

/**
 * `/disk/btrfs/subvolume set`: makes one read-only, or writable.
 *
 * @throws {Refusal} for the root of a file system.
 */
export function changeSubvolume(router: Router, subvolume: Subvolume, readOnly: boolean): void {
  if (isRoot(subvolume)) throw Refusal.noMatch("read-only");
  router.backing.setReadOnly(subvolume.path, readOnly);
  router.subvolumes.setReadOnly(subvolume.id, readOnly);
}

/**
 * `/disk/btrfs/subvolume remove`: the subvolume goes with all its files.
 *
 * @throws {Refusal} for the root of a file system, for one with another one in it, and, as the knob `subvolumeParent` says,
 * for one that has snapshots.
 */
export function removeSubvolume(router: Router, subvolume: Subvolume): void {
  const { files, subvolumes, knobs } = router;
  const { path } = subvolume;
  if (isRoot(subvolume)) throw Refusal.notRemovable(nameOf(subvolume));
  if (subvolumes.isAbove(path)) throw Refusal.notRemovable(fullNameOf(subvolume));
  const held = knobs.subvolumeParent === "held" && subvolumes.snapshotsOf(subvolume).length > 0;
  if (held) throw Refusal.notRemovable(fullNameOf(subvolume));
  const outer = subvolumes.containing(path);
  if (outer?.readOnly) throw Refusal.readOnly();
  files.remove(path);
  subvolumes.remove(subvolume.id, router.delays.deadMs);
}

/** The mounted Btrfs file system of that label. */
function mountPointOf(router: Router, label: string): string {
  const pool = router.pools().find((candidate) => candidate.pool.label === label)?.pool;
  if (pool === undefined || router.filesystemOf(pool) !== "btrfs") throw Refusal.notBtrfs(label);
  return pool.mountPoint;
}

/** A full name is meant first; a name that several have names none of them. */
function getSource({ subvolumes }: Router, mountPoint: string, name: string): Subvolume {
  const full = subvolumes.find(`${mountPoint}/${name}`);
  if (full !== undefined) return full;
  const named = subvolumes.findByName(name).filter((subvolume) =>
    !isRoot(subvolume) && subvolume.path.startsWith(`${mountPoint}/`)
  );
  if (named.length !== 1) throw Refusal.noMatch("parent");
  return named[0]!;
}
