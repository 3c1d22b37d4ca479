import { spanOf } from "../timing.ts";
import type { RecordValue, Value } from "../value.ts";
import { readYesNo } from "./inputs.ts";
import type { Menu, Row } from "./menu.ts";

/** A property of the router itself. */
export type SingleProperty = readonly [name: string, value: Value];

/** A menu without items, of properties of the router itself; they cannot be set. */
export function singleMenu(path: string, read: () => readonly SingleProperty[]): Menu {
  return {
    path,
    single: true,
    columns: [],
    verbs: () => ["print", "get"],
    texts: () => [],
    properties: () => read().map(([name]) => ({ name })),
    rows: () => [rowOf(read())],
    lookup: () => undefined,
    byId: () => undefined,
    byName: () => undefined,
    span: (verb) => spanOf(path, verb),
  };
}

/** A menu without items, of settings that are yes or no: they are stored and shown, without effect, and off at first. */
export function settingsMenu(path: string, names: readonly string[]): Menu {
  const on = new Set<string>();
  return {
    ...singleMenu(path, () => names.map((name) => [name, on.has(name)])),
    verbs: () => ["set", "print", "get"],
    texts: () => names,
    set(_, values) {
      const given = [...values].map(([name, text]) => [name, readYesNo(name, text)] as const);
      for (const [name, isOn] of given) {
        if (isOn) on.add(name);
        else on.delete(name);
      }
    },
  };
}

function rowOf(properties: readonly SingleProperty[]): Row {
  const values = new Map(properties);
  return {
    order: 1,
    id: "*1",
    value: (name) => values.get(name),
    asValue: (names = [...values.keys()]): RecordValue =>
      Object.fromEntries(names.flatMap((name) => values.has(name) ? [[name, values.get(name)!]] : [])),
  };
}
