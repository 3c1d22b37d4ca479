import type { Behaviours } from "../behaviours.ts";
import { formatId } from "../model/disk.ts";
import type { RecordValue, Value } from "../value.ts";
import type { Property, Row } from "./menu.ts";

/** A property with a function that reads it from an item. */
export interface ReadableProperty<Item> extends Property {
  /** Undefined when the item does not have it. */
  read(item: Item): Value | undefined;
  /** Whether `as-value` prints it for this item; undefined means always. */
  reported?(item: Item): boolean;
}

/** How `as-value` differs from the properties' values. */
export interface ReadOnlyProperty<Item> {
  /** Converts a value to another form, or leaves it out. */
  adjust?(name: string, value: Value): Value | undefined;
  /** Properties of this item besides those of its menu. */
  extra?(item: Item): RecordValue;
}

/** An item with its properties. */
export class ItemRow<Item extends { readonly id: number }> implements Row {
  readonly item: Item;
  readonly #properties: ReadonlyMap<string, ReadableProperty<Item>>;
  readonly #reported: ReadOnlyProperty<Item>;

  constructor(
    item: Item,
    properties: ReadonlyMap<string, ReadableProperty<Item>>,
    reported: ReadOnlyProperty<Item> = {},
  ) {
    this.item = item;
    this.#properties = properties;
    this.#reported = reported;
  }

  get order(): number {
    return this.item.id;
  }

  get id(): string {
    return formatId(this.item.id);
  }

  value(name: string): Value | undefined {
    return name === ".id" ? this.id : this.#properties.get(name)?.read(this.item);
  }

  asValue(names?: readonly string[]): RecordValue {
    const { adjust, extra } = this.#reported;
    const record: Record<string, Value> = names === undefined ? { ...extra?.(this.item) } : {};
    record[".id"] = this.id;
    for (const name of names ?? this.#properties.keys()) {
      const property = this.#properties.get(name);
      const value = property?.read(this.item);
      if (property === undefined || value === undefined) continue;
      if (property.isFlag && value === false) continue;
      if (property.reported?.(this.item) === false) continue;
      const reported = adjust === undefined ? value : adjust(name, value);
      if (reported !== undefined) record[name] = reported;
    }
    return record;
  }
}

/** Indexes properties by name. */
export function byName<Item>(properties: readonly ReadableProperty<Item>[]) {
  return new Map(properties.map((property) => [property.name, property]));
}

/** The forms in which a router prints numbers, booleans and `file-size`, depending on its behaviours. */
export function readOnlyOf<Item>({ output }: Behaviours): ReadOnlyProperty<Item> {
  if (output === "plain") return {};
  return {
    adjust(name, value) {
      if (typeof value === "boolean") return value ? "yes" : "no";
      if (typeof value !== "bigint") return value;
      return name === "file-size" ? roundSize(value) : String(value);
    },
  };
}

const units = ["KiB", "MiB", "GiB", "TiB"] as const;

/** A unit is used while the number is at most 1024 of it: 1 GiB is `1024.0MiB`, and only plain bytes are exact. */
export function roundSize(bytes: bigint): string {
  let size = Number(bytes);
  let unit = "";
  for (const next of units) {
    if (size <= 1024) break;
    size /= 1024;
    unit = next;
  }
  return unit === "" ? String(bytes) : `${size.toFixed(1)}${unit}`;
}
