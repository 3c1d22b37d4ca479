import { filesystemMenu } from "./filesystem_menu.ts";
import { firewallMenus } from "./firewall_menus.ts";
import type { Menu, Menus } from "./menu.ts";
import { Accounts, userMenus } from "./user_menus.ts";
import type { Router } from "../model/router.ts";
import { DiskMenu } from "./disk_menu.ts";
import { Users } from "../ssh/users.ts";
import { FileMenu } from "./file_menu.ts";
import { packageMenu, serviceMenu } from "./service_menus.ts";
import { settingsMenu } from "./single_menu.ts";
import { systemMenus } from "./system_menus.ts";
import { SubvolumeMenu } from "./subvolume_menu.ts";

/** The simulated part of a router's tree of commands. */
export function makeMenus(router: Router, users: Users = new Users([])): Menus {
  const menus: readonly Menu[] = [
    new DiskMenu(router),
    settingsMenu("disk/settings", ["auto-smb-sharing", "auto-media-sharing"]),
    new FileMenu(router),
    new SubvolumeMenu(router),
    filesystemMenu(router),
    ...systemMenus(router),
    packageMenu(router),
    serviceMenu(router),
    ...firewallMenus(),
    ...userMenus(router, new Accounts(users)),
  ];
  return new Map(menus.map((menu) => [menu.path, menu]));
}
