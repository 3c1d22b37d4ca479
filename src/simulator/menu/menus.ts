import { Refusal } from "../refusal.ts";
import { required } from "./inputs.ts";
import { makeItemMenu } from "./item_menu.ts";
import type { Menu, Menus, Values } from "./menu.ts";
import { Accounts, userMenus } from "./user_menus.ts";
import type { Router } from "../model/router.ts";
import { DiskMenu } from "./disk_menu.ts";
import { Users } from "../ssh/users.ts";
import { FileMenu } from "./file_menu.ts";
import { serviceMenus, systemMenus } from "./system_menus.ts";
import { SubvolumeMenu } from "./subvolume_menu.ts";

/** A rule, as it was typed. */
interface Rule {
  readonly id: number;
  readonly values: ReadonlyMap<string, string>;
}

const text = ["chain", "protocol", "src-address", "dst-port", "in-interface", "action", "comment"] as const;

/** `/ip/firewall/filter`: rules are kept and shown, and nobody goes by them. */
function firewallMenu(): Menu {
  let rules: readonly Rule[] = [];
  let lastId = 0;
  const put = (rule: Rule) => rules = [...rules.filter(({ id }) => id !== rule.id), rule];
  return makeItemMenu<Rule>({
    path: "ip/firewall/filter",
    verbs: ["add", "set", "remove", "print", "find", "get"],
    columns: ["chain", "action", "protocol", "dst-port", "src-address"],
    texts: text,
    properties: text.map((name) => ({ name, read: ({ values }) => values.get(name) })),
    items: () => rules,
    nameOf: ({ id }) => String(id),
  }, {
    add: (values: Values) => {
      required(values, "chain");
      // What a router reads as a port belongs to a protocol that has ports.
      if (values.has("dst-port") && !/^(tcp|udp)$/.test(values.get("protocol") ?? "")) {
        throw Refusal.noMatch("dst-port");
      }
      put({ id: ++lastId, values: new Map([["action", "accept"], ...values]) });
    },
    set: ({ id, values }, changes) => put({ id, values: new Map([...values, ...changes]) }),
    remove: ({ id }) => rules = rules.filter((rule) => rule.id !== id),
  });
}

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
