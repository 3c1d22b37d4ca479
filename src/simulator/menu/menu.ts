import type { TextForm } from "../output/items.ts";
import type { Span } from "../timing.ts";
import type { RecordValue, Value } from "../value.ts";

/** A verb of a menu. */
export type Verb =
  | "add"
  | "set"
  | "remove"
  | "enable"
  | "disable"
  | "print"
  | "find"
  | "get"
  | "copy"
  | "import"
  | "format"
  | "apply-changes";

/** A property that items of a menu can have. */
export interface Property {
  readonly name: string;
  /**
   * Whether it is shown as a letter or a word before the item, and `as-value` leaves it out while it is false. @default
   * {false}
   */
  readonly isFlag?: boolean;
}

/** One item of a menu, in its present state. */
export interface Row {
  /** Its position among the items: ascending. */
  readonly order: number;
  /** `*1F`. */
  readonly id: string;
  /** Undefined when the item has no such property, or it was never set. */
  value(property: string): Value | undefined;
  /** Everything that `print detail as-value` prints, or the named properties. Always with `.id`. */
  asValue(properties?: readonly string[]): RecordValue;
}

/** Values for `add`, `set` and `copy`, by property. */
export type Values = ReadonlyMap<string, string>;

/** A menu in the router's tree of commands, with its items. */
export interface Menu {
  /** Without slash in front: `disk`, `disk/btrfs/subvolume`. */
  readonly path: string;
  /** Whether the menu has no list of items, only its own properties. */
  readonly single: boolean;
  /** Its verbs on this kind of router; a menu without verbs does not exist there. */
  verbs(): readonly Verb[];
  /** Words that a verb accepts as `word=value`, on this kind of router. */
  texts(verb: Verb): readonly string[];
  /** Properties of its items, on this kind of router. */
  properties(): readonly Property[];
  /** Properties that `print` shows without `detail`. */
  readonly columns: readonly string[];
  /** How its items are printed for people; undefined for one line each. */
  textForm?(): TextForm;
  /** Every item, in order. */
  rows(): readonly Row[];
  /** The items with that value, found without reading every item; undefined without such an index. */
  lookup(property: string, text: string): readonly Row[] | undefined;
  /**
   * The items whose property a regular expression can match, and maybe others, found without reading every item;
   * undefined without such an index.
   */
  search?(property: string, pattern: string): readonly Row[] | undefined;
  /** The items of which a property can be true, and maybe others; undefined without such an index. */
  flagged?(property: string): readonly Row[] | undefined;
  /** The number of an item, its position among all; undefined where that needs a read of all items. */
  numberOf?(row: Row): number;
  /** Orders items as in `rows()`, if that is not the order of their ids. */
  compare?(a: Row, b: Row): number;
  /** The item of that id. */
  byId(id: string): Row | undefined;
  /** The item of that name. */
  byName(name: string): Row | undefined;
  /** How long `verb` takes on a real router. */
  span(verb: Verb, values: Values): Span;
  add?(values: Values): void;
  /** Imports something from a file; no item is named. */
  import?(values: Values): void;
  set?(row: Row, values: Values): void;
  remove?(row: Row): void;
  /** Applies scheduled changes; no item is named. */
  "apply-changes"?(values: Values): void;
  /** Makes a file system. */
  format?(row: Row, values: Values): void;
  /** Returns how long it takes besides its {@linkcode span}, in milliseconds. */
  copy?(row: Row, values: Values): number;
}

/** The tree of commands. */
export type Menus = ReadonlyMap<string, Menu>;

/** Whether there is a menu at `path` or below it. */
export function isMenuPath(menus: Menus, path: string): boolean {
  for (const other of menus.values()) {
    const lies = other.path === path || other.path.startsWith(`${path}/`);
    if (lies && other.verbs().length > 0) return true;
  }
  return false;
}
