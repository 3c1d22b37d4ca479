import { formatUptime, type Router } from "../model/router.ts";
import type { Menu } from "./menu.ts";
import { singleMenu, type SingleProperty } from "./single_menu.ts";

const gibibyte = 1024n ** 3n;

/** The read-only menus below `/system`. */
export function systemMenus(router: Router): readonly Menu[] {
  return [
    singleMenu("system/resource", () => resourceLines(router)),
    singleMenu("system/identity", () => [["name", router.system.identity]]),
    singleMenu("system/clock", () => clockLines(router)),
    singleMenu("system/ntp/client", () => [["enabled", false], ["servers", ""]]),
  ];
}

function resourceLines({ system, profile }: Router): readonly SingleProperty[] {
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

function clockLines({ clock }: Router): readonly SingleProperty[] {
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
