import { parseId } from "../model/disk.ts";
import type { Router } from "../model/router.ts";
import { fullNameOf, isRoot, nameOf, rootName, type Subvolume } from "../model/subvolumes.ts";
import { Refusal } from "../refusal.ts";
import { type Span, spanOf } from "../timing.ts";
import { formatTime, readYesNo } from "./inputs.ts";
import type { Menu, Property, Row, Values, Verb } from "./menu.ts";
import { byName, ItemRow, type ReadableProperty, readOnlyOf } from "./rows.ts";
import { normalisePath, parentOf } from "../model/paths.ts";

const verbs: readonly Verb[] = ["add", "set", "remove", "print", "find", "get"];

/** `/disk/btrfs/subvolume`. */
export class SubvolumeMenu implements Menu {
  readonly path = "disk/btrfs/subvolume";
  readonly single = false;
  readonly columns = ["fs", "name", "parent"];
  readonly #router: Router;
  readonly #properties: readonly ReadableProperty<Subvolume>[];

  constructor(router: Router) {
    this.#router = router;
    this.#properties = subvolumeProperties(router);
  }

  verbs(): readonly Verb[] {
    return this.#router.profile.vocabulary.rose ? verbs : [];
  }

  texts(verb: Verb): readonly string[] {
    return verb === "set" ? ["read-only"] : ["fs", "name", "parent", "read-only"];
  }

  properties(): readonly Property[] {
    return this.#properties;
  }

  rows(): readonly Row[] {
    const { subvolumes } = this.#router;
    return this.#rows([...subvolumes.list(), ...subvolumes.dead].toSorted((a, b) => a.id - b.id));
  }

  lookup(property: string, text: string): readonly Row[] | undefined {
    const { subvolumes } = this.#router;
    const dead = (nameOf: (subvolume: Subvolume) => string) =>
      subvolumes.dead.filter((subvolume) => nameOf(subvolume) === text);
    if (property === "name") return this.#rows([...subvolumes.findByName(text), ...dead(nameOf)]);
    if (property !== "fullname" || text === rootName) return undefined;
    const paths = this.#router.pools().map(({ pool }) => `${pool.mountPoint}/${text}`);
    return this.#rows([...paths.flatMap((path) => subvolumes.find(path) ?? []), ...dead(fullNameOf)]);
  }

  byId(id: string): Row | undefined {
    const subvolume = this.#router.subvolumes.get(parseId(id) ?? -1);
    return subvolume === undefined ? undefined : this.#rows([subvolume])[0];
  }

  byName(name: string): Row | undefined {
    return this.lookup("name", name)?.[0];
  }

  span(verb: Verb): Span {
    return spanOf(this.path, verb);
  }

  add(values: Values): void {
    const filesystem = values.get("fs");
    const name = values.get("name");
    if (filesystem === undefined) throw Refusal.missingValue("fs");
    if (name === undefined || name === "") throw Refusal.missingValue("name");
    const parent = values.get("parent");
    addSubvolume(this.#router, {
      filesystem,
      name,
      parent: parent === "" ? undefined : parent,
      readOnly: readYesNo("read-only", values.get("read-only") ?? "no"),
    });
  }

  set(row: Row, values: Values): void {
    const readOnly = values.get("read-only");
    if (readOnly === undefined) return;
    changeSubvolume(this.#router, this.#subvolume(row), readYesNo("read-only", readOnly));
  }

  remove(row: Row): void {
    removeSubvolume(this.#router, this.#subvolume(row));
  }

  #subvolume(row: Row): Subvolume {
    const subvolume = this.#router.subvolumes.get(row.order);
    if (subvolume === undefined) throw Refusal.noSuchItemId();
    return subvolume;
  }

  /** Only those of mounted Btrfs file systems are visible. */
  #rows(subvolumes: readonly Subvolume[]): readonly Row[] {
    const seen = new Set(
      this.#router.pools().filter(({ pool }) => this.#router.filesystemOf(pool) === "btrfs")
        .map(({ pool }) => pool.mountPoint),
    );
    const properties = byName(this.#properties);
    const reported = readOnlyOf<Subvolume>(this.#router.behaviours);
    return subvolumes.filter(({ path }) => seen.has(path.split("/")[0]!))
      .map((subvolume) => new ItemRow(subvolume, properties, reported));
  }
}

/** Properties of a subvolume. */
function subvolumeProperties(router: Router): readonly ReadableProperty<Subvolume>[] {
  const { subvolumes } = router;
  const label = ({ path }: Subvolume) => router.poolOf(path)?.pool.label;
  const fullName = (subvolume: Subvolume | undefined) =>
    subvolume === undefined ? undefined : fullNameOf(subvolume);
  const snapshotNames = (subvolume: Subvolume) => {
    const names = subvolumes.snapshotsOf(subvolume).map(fullNameOf);
    return names.length === 0 ? undefined : names;
  };
  return [
    { name: "default", isFlag: true, read: isRoot },
    { name: "snapshot", isFlag: true, read: ({ sourceUuid }) => sourceUuid !== undefined },
    { name: "read-only", isFlag: true, read: ({ readOnly }) => readOnly },
    { name: "dead", isFlag: true, read: ({ dead }) => dead },
    { name: "mounted", isFlag: true, read: () => false },
    { name: "fs", read: label },
    { name: "name", read: nameOf },
    { name: "fullname", read: fullNameOf },
    {
      name: "top-level",
      read: (one) => isRoot(one) ? undefined : fullName(subvolumes.containing(one.path)),
    },
    { name: "parent", read: (one) => fullName(subvolumes.findByUuid(one.sourceUuid)) },
    { name: "mount", read: () => false },
    { name: "uuid", read: ({ uuid }) => uuid },
    { name: "subvolume-id", read: ({ subvolumeId }) => BigInt(subvolumeId) },
    { name: "generation", read: ({ generation }) => BigInt(generation) },
    { name: "creation-time", read: ({ createdAtMs }) => formatTime(createdAtMs) },
    { name: "snapshots", read: snapshotNames },
  ];
}

/** The arguments of `/disk/btrfs/subvolume add`. */
interface NewSubvolume {
  /** Label of the file system. */
  readonly filesystem: string;
  /** Path within the file system. */
  readonly name: string;
  /** Name or full name of the source subvolume of a snapshot. */
  readonly parent: string | undefined;
  readonly readOnly: boolean;
}

/**
 * `/disk/btrfs/subvolume add`: makes an empty subvolume, or a snapshot of its parent.
 *
 * @throws {Refusal} when it cannot; then nothing has changed.
 */
function addSubvolume(router: Router, { filesystem, name, parent, readOnly }: NewSubvolume): void {
  const { files, subvolumes, behaviours } = router;
  const mountPoint = mountPointOf(router, filesystem);
  if (behaviours.subvolumeNames === "flat" && name.includes("/")) throw Refusal.noMatch("name");
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
 * `/disk/btrfs/subvolume set`: makes a subvolume read-only, or writable.
 *
 * @throws {Refusal} for the root of a file system.
 */
function changeSubvolume(router: Router, subvolume: Subvolume, readOnly: boolean): void {
  if (isRoot(subvolume)) throw Refusal.noMatch("read-only");
  router.backing.setReadOnly(subvolume.path, readOnly);
  router.subvolumes.setReadOnly(subvolume.id, readOnly);
}

/**
 * `/disk/btrfs/subvolume remove`: removes the subvolume with all its files.
 *
 * @throws {Refusal} for the root of a file system, for one that contains another, and, depending on the behaviour
 *   `subvolumeParent`, for one that has snapshots.
 */
function removeSubvolume(router: Router, subvolume: Subvolume): void {
  const { files, subvolumes, behaviours } = router;
  const { path } = subvolume;
  if (isRoot(subvolume)) throw Refusal.notRemovable(nameOf(subvolume));
  if (subvolumes.isAbove(path)) throw Refusal.notRemovable(fullNameOf(subvolume));
  const held = behaviours.subvolumeParent === "held" && subvolumes.snapshotsOf(subvolume).length > 0;
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

/** A full name is tried first; a name that several subvolumes have names none of them. */
function getSource({ subvolumes }: Router, mountPoint: string, name: string): Subvolume {
  const full = subvolumes.find(`${mountPoint}/${name}`);
  if (full !== undefined) return full;
  const named = subvolumes.findByName(name).filter((subvolume) =>
    !isRoot(subvolume) && subvolume.path.startsWith(`${mountPoint}/`)
  );
  if (named.length !== 1) throw Refusal.noMatch("parent");
  return named[0]!;
}
