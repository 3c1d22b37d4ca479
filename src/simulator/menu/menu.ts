import type { TextForm } from "../output/items.ts";
import type { Span } from "../timing.ts";
import type { RecordValue, Value } from "../value.ts";

/** What can be done in a menu. */
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
  /** A letter or a word before the item, which `as-value` leaves out where it is not so. @default {false} */
  readonly isFlag?: boolean;
}

/** One item of a menu, as it is at this moment. */
export interface Row {
  /** Its place among the items: ascending. */
  readonly order: number;
  /** `*1F`. */
  readonly id: string;
  /** Undefined when the item has no such property, or it was never set. */
  value(property: string): Value | undefined;
  /** Everything that `print detail as-value` tells, or the properties named. Always with `.id`. */
  asValue(properties?: readonly string[]): RecordValue;
}

/** Values given to `add`, `set` and `copy`, by property. */
export type Values = ReadonlyMap<string, string>;

/** A place in the router's tree of commands, with the items that it shows. */
export interface Menu {
  /** Without slash in front: `disk`, `disk/btrfs/subvolume`. */
  readonly path: string;
  /** A single menu has no list of items, only properties of its own. */
  readonly single: boolean;
  /** What can be done here, on this kind of router; where nothing can, there is no such menu. */
  verbs(): readonly Verb[];
  /** Words that a verb takes as `word=value`, on this kind of router. */
  texts(verb: Verb): readonly string[];
  /** Properties of its items, on this kind of router. */
  properties(): readonly Property[];
  /** Properties that `print` tells without `detail`. */
  readonly columns: readonly string[];
  /** How its items are printed for people; undefined for a line each. */
  textForm?(): TextForm;
  /** Every item, in order. */
  rows(): readonly Row[];
  /** The items that have that value, found without looking at every item; undefined where there is no such index. */
  lookup(property: string, text: string): readonly Row[] | undefined;
  /**
   * The items whose property a regular expression can match, and maybe others, found without looking at every item; undefined
   * where no index tells.
   */
  search?(property: string, pattern: string): readonly Row[] | undefined;
  /** The items of which a property can be true, and maybe others; undefined where no index tells. */
  flagged?(property: string): readonly Row[] | undefined;
  /** The number of an item, its place among all; undefined where only a look at all items tells. */
  numberOf?(row: Row): number;
  /** Puts items in the order of `rows()`, where that is not the order of their ids. */
  compare?(a: Row, b: Row): number;
  /** The item of that id. */
  byId(id: string): Row | undefined;
  /** The item that goes by that name. */
  byName(name: string): Row | undefined;
  /** How long `verb` takes on a real router. */
  span(verb: Verb, values: Values): Span;
  add?(values: Values): void;
  /** Takes something in out of a file; no item is named. */
  import?(values: Values): void;
  set?(row: Row, values: Values): void;
  remove?(row: Row): void;
  /** Makes what was scheduled true; no item is named. */
  "apply-changes"?(values: Values): void;
  /** Makes a file system. */
  format?(row: Row, values: Values): void;
  /** Gives how long it takes beside its {@linkcode span}, in milliseconds. */
  copy?(row: Row, values: Values): number;
}

/** The tree of commands. */
export type Menus = ReadonlyMap<string, Menu>;

/** Whether some menu lies at `path` or below it. */
export function isMenuPath(menus: Menus, path: string): boolean {
  for (const other of menus.values()) {
    const lies = other.path === path || other.path.startsWith(`${path}/`);
    if (lies && other.verbs().length > 0) return true;
  }
  return false;
}
