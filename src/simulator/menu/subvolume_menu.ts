import { parseId } from "../model/disk.ts";
import type { Router } from "../model/router.ts";
import { addSubvolume, changeSubvolume, removeSubvolume } from "../model/subvolume_operations.ts";
import { fullNameOf, nameOf, rootName, type Subvolume } from "../model/subvolumes.ts";
import { Refusal } from "../refusal.ts";
import { type Span, spanOf } from "../timing.ts";
import { readYesNo } from "./inputs.ts";
import type { Menu, Property, Row, Values, Verb } from "./menu.ts";
import { byName, ItemRow, type ReadableProperty, tellingOf } from "./rows.ts";
import { subvolumeProperties } from "./subvolume_properties.ts";

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
    const { rose, subvolumes } = this.#router.profile.vocabulary;
    return rose && subvolumes ? verbs : [];
  }

  words(verb: Verb): readonly string[] {
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

  /** Only those of mounted Btrfs file systems are seen. */
  #rows(subvolumes: readonly Subvolume[]): readonly Row[] {
    const seen = new Set(
      this.#router.pools().filter(({ pool }) => this.#router.filesystemOf(pool) === "btrfs")
        .map(({ pool }) => pool.mountPoint),
    );
    const properties = byName(this.#properties);
    const told = tellingOf<Subvolume>(this.#router.knobs);
    return subvolumes.filter(({ path }) => seen.has(path.split("/")[0]!))
      .map((subvolume) => new ItemRow(subvolume, properties, told));
  }
}
