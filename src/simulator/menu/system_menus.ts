import { formatUptime, type Router } from "../model/router.ts";
import { spanOf } from "../timing.ts";
import type { RecordValue, Value } from "../value.ts";
import type { Menu, Row, Verb } from "./menu.ts";

/** One thing that the router tells about itself. */
type Property = readonly [name: string, value: Value];

const gibibyte = 1024n ** 3n;

/** The menus below `/system`, which are only read here. */
export function systemMenus(router: Router): readonly Menu[] {
  return [
    readOnlyMenu("system/resource", true, [], () => [resourceLines(router)]),
    readOnlyMenu("system/identity", true, [], () => [[["name", router.system.identity]]]),
  ];
}

function resourceLines({ system, profile }: Router): readonly Property[] {
  return [
    ["uptime", formatUptime(system.uptimeMs)],
    ["version", profile.version],
    ["free-memory", 30n * gibibyte],
    ["total-memory", 32n * gibibyte],
    ["cpu", "ARM64"],
    ["cpu-count", 16n],
    ["cpu-load", 1n],
    ["architecture-name", system.architecture],
    ["board-name", system.boardName],
    ["platform", "MikroTik"],
  ];
}

/** A menu that is only read here: a single item, or a list of them. */
function readOnlyMenu(
  path: string,
  single: boolean,
  columns: readonly string[],
  read: () => readonly (readonly Property[])[],
): Menu {
  const verbs: readonly Verb[] = single ? ["print", "get"] : ["print", "find", "get"];
  const rows = () => read().map((lines, index) => lineRow(lines, index + 1, single));
  return {
    path,
    single,
    columns,
    verbs: () => verbs,
    texts: () => [],
    properties: () => (read()[0] ?? []).map(([name]) => ({ name })),
    rows,
    lookup: () => undefined,
    byId: (id) => rows().find((row) => row.id === id),
    byName: (name) => rows().find((row) => row.value("name") === name),
    span: (verb) => spanOf(path, verb),
  };
}

function lineRow(lines: readonly Property[], order: number, single: boolean): Row {
  const values = new Map(lines.map(([name, value]) => [name, value]));
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

/** `/system/clock` and `/system/ntp/client`, which are only read here. */
export function clockMenus(router: Router): readonly Menu[] {
  return [
    readOnlyMenu("system/clock", true, [], () => [clockLines(router)]),
    readOnlyMenu("system/ntp/client", true, [], () => [[["enabled", false], ["servers", ""]]]),
  ];
}

function clockLines({ clock }: Router): readonly Property[] {
  const [date = "", time = ""] = new Date(clock.now()).toISOString().split(/[T.]/);
  return [
    ["time", time],
    ["date", date],
    ["time-zone-autodetect", true],
    ["time-zone-name", "UTC"],
    ["gmt-offset", "+00:00"],
    ["dst-active", false],
  ];
}
