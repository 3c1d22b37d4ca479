import { Refusal } from "../refusal.ts";
import { required } from "./inputs.ts";
import { makeItemMenu } from "./item_menu.ts";
import type { Menu, Menus, Values } from "./menu.ts";
import { Accounts, userMenus } from "./user_menus.ts";
import type { Router } from "../model/router.ts";
import { DiskMenu } from "./disk_menu.ts";
import { Users } from "../ssh/users.ts";
import { FileMenu } from "./file_menu.ts";
import { packageMenu, serviceMenu } from "./service_menus.ts";
import { systemMenus } from "./system_menus.ts";
import { SubvolumeMenu } from "./subvolume_menu.ts";

/** A firewall rule, as it was typed. */
interface Rule {
  readonly id: number;
  readonly values: ReadonlyMap<string, string>;
}

const text = ["chain", "protocol", "src-address", "dst-port", "in-interface", "action", "comment"] as const;

/** The word of `add` with the number of the rule before which the new one is placed. */
const placeBefore = "place-before";

/** The position of a new rule among so many. */
function placeOf(number: string | undefined, count: number): number {
  if (number === undefined) return count;
  if (!/^[0-9]{1,4}$/.test(number) || Number(number) >= count) throw Refusal.noSuchItem();
  return Number(number);
}

/** `/ip/firewall/filter`: rules are stored and shown, without effect. */
function firewallMenu(): Menu {
  let rules: readonly Rule[] = [];
  let lastId = 0;
  const put = (rule: Rule) => rules = rules.map((one) => one.id === rule.id ? rule : one);
  return makeItemMenu<Rule>({
    path: "ip/firewall/filter",
    verbs: ["add", "set", "remove", "print", "find", "get"],
    columns: ["chain", "action", "protocol", "dst-port", "src-address"],
    texts: [...text, placeBefore],
    properties: text.map((name) => ({ name, read: ({ values }) => values.get(name) })),
    items: () => rules,
    nameOf: ({ id }) => String(id),
  }, {
    add: (given: Values) => {
      const values = new Map(given);
      values.delete(placeBefore);
      required(values, "chain");
      // A router accepts a port only for a protocol that has ports.
      if (values.has("dst-port") && !/^(tcp|udp)$/.test(values.get("protocol") ?? "")) {
        throw Refusal.noMatch("dst-port");
      }
      const rule = { id: ++lastId, values: new Map([["action", "accept"], ...values]) };
      rules = rules.toSpliced(placeOf(given.get(placeBefore), rules.length), 0, rule);
    },
    set: ({ id, values }, changes) => put({ id, values: new Map([...values, ...changes]) }),
    remove: ({ id }) => rules = rules.filter((rule) => rule.id !== id),
  });
}

/** The simulated part of a router's tree of commands. */
export function makeMenus(router: Router, users: Users = new Users([])): Menus {
  const menus: readonly Menu[] = [
    new DiskMenu(router),
    new FileMenu(router),
    new SubvolumeMenu(router),
    ...systemMenus(router),
    packageMenu(router),
    serviceMenu(router),
    firewallMenu(),
    ...userMenus(router, new Accounts(users)),
  ];
  return new Map(menus.map((menu) => [menu.path, menu]));
}
