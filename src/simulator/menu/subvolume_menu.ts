import { parseId } from "../model/disk.ts";
import type { Router } from "../model/router.ts";
import type { Subvolume } from "../model/subvolumes.ts";
import { Refusal } from "../refusal.ts";
import { type Span, spanOf } from "../timing.ts";
import { readYesNo } from "./inputs.ts";
import type { Flag, Menu, Property, Row, Values, Verb } from "./menu.ts";
import { byName, ItemRow, type ReadableProperty } from "./rows.ts";

const verbs: readonly Verb[] = ["add", "remove", "print", "find", "get"];

const properties: readonly ReadableProperty<Subvolume>[] = [
  { name: "read-only", notation: "flag", read: (subvolume) => subvolume.readOnly },
  { name: "fs", notation: "plain", read: (subvolume) => subvolume.filesystem },
  { name: "name", notation: "quoted", read: (subvolume) => subvolume.name },
  {
    name: "parent",
    notation: "quoted",
    read: (subvolume) => subvolume.parent === "" ? undefined : subvolume.parent,
  },
];
const propertiesByName = byName(properties);

/** `/disk/btrfs/subvolume`. */
export class SubvolumeMenu implements Menu {
  readonly path = "disk/btrfs/subvolume";
  readonly single = false;
  readonly flags: readonly Flag[] = [{ letter: "R", property: "read-only", legend: "READ-ONLY", column: 0 }];
  readonly columns = ["fs", "name", "parent"];
  readonly #router: Router;

  constructor(router: Router) {
    this.#router = router;
  }

  verbs(): readonly Verb[] {
    return verbs;
  }

  words(): readonly string[] {
    return ["fs", "name", "parent", "read-only"];
  }

  properties(): readonly Property[] {
    return properties;
  }

  rows(): readonly Row[] {
    return this.#rows(this.#router.subvolumes.list());
  }

  lookup(): undefined {
    return undefined;
  }

  byId(id: string): Row | undefined {
    const subvolume = this.#router.subvolumes.get(parseId(id) ?? -1);
    return subvolume === undefined ? undefined : this.#rows([subvolume])[0];
  }

  byName(name: string): Row | undefined {
    return this.rows().find((row) => row.value("name") === name);
  }

  span(verb: Verb): Span {
    return spanOf(this.path, verb);
  }

  /** Makes an empty subvolume, or a snapshot of its parent, on the Btrfs file system of that label. */
  add(values: Values): void {
    const filesystem = values.get("fs");
    const name = values.get("name");
    if (filesystem === undefined) throw Refusal.missingValue("fs");
    if (name === undefined || name === "") throw Refusal.missingValue("name");
    const pool = this.#router.disks.list().find((disk) => disk.pool?.label === filesystem)?.pool;
    if (!pool?.mounted || this.#router.profile.poolFilesystem !== "btrfs") throw Refusal.notBtrfs(filesystem);
    this.#router.subvolumes.add({
      filesystem,
      name,
      parent: values.get("parent") ?? "",
      readOnly: readYesNo("read-only", values.get("read-only") ?? "no"),
    });
  }

  remove(row: Row): void {
    this.#router.subvolumes.remove(row.order);
  }

  #rows(subvolumes: readonly Subvolume[]): readonly Row[] {
    return subvolumes.map((subvolume) => new ItemRow(subvolume, propertiesByName));
  }
}
