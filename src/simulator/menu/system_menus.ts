import { formatUptime, type Router } from "../model/router.ts";
import { spanOf } from "../timing.ts";
import type { RecordValue, Value } from "../value.ts";
import type { Menu, Row } from "./menu.ts";

/** One property of the router itself. */
type Property = readonly [name: string, value: Value];

const gibibyte = 1024n ** 3n;

/** The read-only menus below `/system`. */
export function systemMenus(router: Router): readonly Menu[] {
  return [
    readOnlyMenu("system/resource", () => resourceLines(router)),
    readOnlyMenu("system/identity", () => [["name", router.system.identity]]),
    readOnlyMenu("system/clock", () => clockLines(router)),
    readOnlyMenu("system/ntp/client", () => [["enabled", false], ["servers", ""]]),
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

/** A read-only menu of a single item. */
function readOnlyMenu(path: string, read: () => readonly Property[]): Menu {
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

function rowOf(lines: readonly Property[]): Row {
  const values = new Map(lines);
  return {
    order: 1,
    id: "*1",
    value: (name) => values.get(name),
    asValue: (names = [...values.keys()]): RecordValue =>
      Object.fromEntries(names.flatMap((name) => values.has(name) ? [[name, values.get(name)!]] : [])),
  };
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
