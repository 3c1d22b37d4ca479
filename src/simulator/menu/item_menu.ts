import { parseId } from "../model/disk.ts";
import { Refusal } from "../refusal.ts";
import { spanOf } from "../timing.ts";
import type { Menu, Row, Values, Verb } from "./menu.ts";
import { byName, ItemRow, type ReadableProperty, type ReadOnlyProperty } from "./rows.ts";

/** The differences between menus of plain lists. */
export interface Shape<Item extends { readonly id: number }> {
  readonly path: string;
  readonly verbs: readonly Verb[];
  readonly columns: readonly string[];
  /** Words that `add`, `set` and `import` accept. */
  readonly texts: readonly string[];
  readonly properties: readonly ReadableProperty<Item>[];
  items(): readonly Item[];
  /** Returns the name of an item. */
  nameOf(item: Item): string;
  /** How `as-value` differs from the properties' values; undefined for not at all. */
  reported?(): ReadOnlyProperty<Item>;
}

/** The changes of an item of such a list. */
export type Changes<Item> = Pick<Menu, "add" | "import"> & {
  readonly set?: (item: Item, values: Values) => void;
  readonly remove?: (item: Item) => void;
};

/** A menu whose items are a plain list. */
export function makeItemMenu<Item extends { readonly id: number }>(
  shape: Shape<Item>,
  changes: Changes<Item>,
): Menu {
  const { path, columns } = shape;
  const properties = byName(shape.properties);
  const itemOf = (row: Row): Item => {
    const item = shape.items().find(({ id }) => id === row.order);
    if (item === undefined) throw Refusal.noSuchItemId();
    return item;
  };
  const made = (item: Item) => new ItemRow(item, properties, shape.reported?.());
  const rowOf = (item: Item | undefined) => item === undefined ? undefined : made(item);
  const { add, import: load, set, remove } = changes;
  return {
    path,
    single: false,
    columns,
    verbs: () => shape.verbs,
    texts: () => shape.texts,
    properties: () => shape.properties,
    rows: () => shape.items().map(made),
    lookup: () => undefined,
    byId: (id) => rowOf(shape.items().find((item) => item.id === parseId(id))),
    byName: (name) => rowOf(shape.items().find((item) => shape.nameOf(item) === name)),
    span: (verb) => spanOf(path, verb),
    ...(add === undefined ? {} : { add }),
    ...(load === undefined ? {} : { import: load }),
    ...(set === undefined ? {} : { set: (row: Row, values: Values) => set(itemOf(row), values) }),
    ...(remove === undefined ? {} : { remove: (row: Row) => remove(itemOf(row)) }),
  };
}
