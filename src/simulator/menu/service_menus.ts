import type { Router } from "../model/router.ts";
import type { Menu } from "./menu.ts";
import { type Line, readOnlyMenu } from "./system_menus.ts";

/** `/system/clock` and `/ip/service`, which are only read here. */
export function serviceMenus(router: Router): readonly Menu[] {
  return [
    readOnlyMenu("system/clock", true, [], () => [clockLines(router)]),
    readOnlyMenu("ip/service", false, ["name", "port"], () => [sshLines(router)]),
  ];
}

function clockLines({ clock }: Router): readonly Line[] {
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

function sshLines({ knobs }: Router): readonly Line[] {
  const { maxSessions } = knobs;
  return [
    ["name", "ssh"],
    ["port", 22n],
    ...(Number.isFinite(maxSessions) ? [["max-sessions", BigInt(maxSessions)] as const] : []),
  ];
}
