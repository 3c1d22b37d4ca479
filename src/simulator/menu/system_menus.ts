import type { Router } from "../model/router.ts";
import { formatUptime } from "../model/system.ts";
import { spanOf } from "../timing.ts";
import type { RecordValue, Value } from "../value.ts";
import type { Menu, Notation, Property, Row, Verb } from "./menu.ts";

/** One thing that the router tells about itself. */
export type Line = readonly [name: string, notation: Notation, value: Value];

const gibibyte = 1024n ** 3n;

/** The menus below `/system`, which are only read here. */
export function systemMenus(router: Router): readonly Menu[] {
  return [
    readOnlyMenu("system/resource", true, [], () => [resourceLines(router)]),
    readOnlyMenu("system/identity", true, [], () => [[["name", "plain", router.system.identity]]]),
    readOnlyMenu("system/package", false, ["name", "version"], () => packageLines(router)),
    readOnlyMenu("system/health", false, ["name", "value", "type"], () => healthLines(router)),
  ];
}

function resourceLines({ system, profile }: Router): readonly Line[] {
  return [
    ["uptime", "duration", formatUptime(system.uptimeMs)],
    ["version", "plain", profile.version],
    ["free-memory", "rounded", 30n * gibibyte],
    ["total-memory", "rounded", 32n * gibibyte],
    ["cpu", "plain", "ARM64"],
    ["cpu-count", "plain", 16n],
    ["cpu-load", "percent", 1n],
    ["architecture-name", "plain", system.architecture],
    ["board-name", "plain", system.boardName],
    ["platform", "plain", "MikroTik"],
  ];
}

function packageLines(router: Router): readonly (readonly Line[])[] {
  return router.packages.map(({ name, version, disabled }): readonly Line[] => [
    ["name", "quoted", name],
    ["version", "quoted", version],
    ["disabled", "plain", disabled],
  ]);
}

function healthLines(router: Router): readonly (readonly Line[])[] {
  return router.system.health.map(({ name, value, type }): readonly Line[] => [
    ["name", "quoted", name],
    ["value", "plain", value],
    ["type", "quoted", type],
  ]);
}

/** A menu that is only read here: a single item, or a list of them. */
export function readOnlyMenu(
  path: string,
  single: boolean,
  columns: readonly string[],
  read: () => readonly (readonly Line[])[],
): Menu {
  const verbs: readonly Verb[] = single ? ["print", "get"] : ["print", "find", "get"];
  const rows = () => read().map((lines, index) => lineRow(lines, index + 1, single));
  return {
    path,
    single,
    flags: [],
    columns,
    verbs: () => verbs,
    words: () => [],
    properties: () => (read()[0] ?? []).map(([name, notation]): Property => ({ name, notation })),
    rows,
    lookup: () => undefined,
    byId: (id) => rows().find((row) => row.id === id),
    byName: (name) => rows().find((row) => row.value("name") === name),
    span: (verb) => spanOf(path, verb),
  };
}

function lineRow(lines: readonly Line[], order: number, single: boolean): Row {
  const values = new Map(lines.map(([name, , value]) => [name, value]));
  const id = `*${order}`;
  return {
    order,
    id,
    value: (name) => name === ".id" ? id : values.get(name),
    asValue: (names = [...values.keys()]): RecordValue => ({
      ...(single ? {} : { ".id": id }),
      ...Object.fromEntries(names.flatMap((name) => values.has(name) ? [[name, values.get(name)!]] : [])),
    }),
  };
}
