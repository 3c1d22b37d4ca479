import { spanOf } from "../timing.ts";
import { readYesNo } from "./inputs.ts";
import type { Menu } from "./menu.ts";
import { byName, ItemRow } from "./rows.ts";

interface Settings {
  readonly id: number;
  readonly on: ReadonlySet<string>;
}

/** A menu without items, of settings that are yes or no: they are stored and shown, without effect, and off at first. */
export function settingsMenu(path: string, names: readonly string[]): Menu {
  let settings: Settings = { id: 1, on: new Set() };
  const properties = names.map((name) => ({ name, read: ({ on }: Settings) => on.has(name) }));
  return {
    path,
    single: true,
    columns: [],
    verbs: () => ["set", "print", "get"],
    texts: () => names,
    properties: () => properties,
    rows: () => [new ItemRow(settings, byName(properties))],
    lookup: () => undefined,
    byId: () => undefined,
    byName: () => undefined,
    span: (verb) => spanOf(path, verb),
    set(_, values) {
      const on = new Set(settings.on);
      for (const [name, text] of values) {
        if (readYesNo(name, text)) on.add(name);
        else on.delete(name);
      }
      settings = { ...settings, on };
    },
  };
}
