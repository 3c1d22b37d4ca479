import { Accounts, userMenus } from "./user_menus.ts";
import type { Router } from "../model/router.ts";
import { DiskMenu } from "./disk_menu.ts";
import { Users } from "../ssh/users.ts";
import { FileMenu } from "./file_menu.ts";
import { firewallMenu } from "./firewall_menu.ts";
import type { Menu, Menus } from "./menu.ts";
import { serviceMenus, systemMenus } from "./system_menus.ts";
import { SubvolumeMenu } from "./subvolume_menu.ts";

/** The tree of commands of a router, as far as the simulator knows it. */
export function makeMenus(router: Router, users: Users = new Users([])): Menus {
  const menus: readonly Menu[] = [
    new DiskMenu(router),
    new FileMenu(router),
    new SubvolumeMenu(router),
    ...systemMenus(router),
    ...serviceMenus(router),
    firewallMenu(),
    ...userMenus(router, new Accounts(users)),
  ];
  return new Map(menus.map((menu) => [menu.path, menu]));
}
