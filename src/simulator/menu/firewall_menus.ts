import { Refusal } from "../refusal.ts";
import { required } from "./inputs.ts";
import { makeItemMenu } from "./item_menu.ts";
import type { Menu, Values } from "./menu.ts";
import { settingsMenu } from "./single_menu.ts";

/** A firewall rule, as it was typed. */
interface Rule {
  readonly id: number;
  readonly values: ReadonlyMap<string, string>;
}

const texts = [
  ...["chain", "protocol", "src-address", "src-address-list", "dst-address", "dst-port", "in-interface"],
  ...["in-interface-list", "connection-state", "action", "jump-target", "log", "comment"],
] as const;

/** The word of `add` with the number of the rule before which the new one is placed. */
const placeBefore = "place-before";

/** The position of a new rule among so many. */
function placeOf(number: string | undefined, count: number): number {
  if (number === undefined) return count;
  if (!/^[0-9]{1,4}$/.test(number) || Number(number) >= count) throw Refusal.noSuchItem();
  return Number(number);
}

/** The firewalls of both protocols, and whether the router speaks IPv6. */
export function firewallMenus(): readonly Menu[] {
  return [
    filterMenu("ip/firewall/filter"),
    filterMenu("ipv6/firewall/filter"),
    settingsMenu("ipv6/settings", ["disable-ipv6"]),
  ];
}

/** Rules are stored and shown, without effect. */
function filterMenu(path: string): Menu {
  let rules: readonly Rule[] = [];
  let lastId = 0;
  const put = (rule: Rule) => rules = rules.map((one) => one.id === rule.id ? rule : one);
  return makeItemMenu<Rule>({
    path,
    verbs: ["add", "set", "remove", "enable", "disable", "print", "find", "get"],
    columns: ["chain", "action", "protocol", "dst-port", "src-address"],
    texts: [...texts, "disabled", placeBefore],
    properties: [
      { name: "disabled", isFlag: true, read: ({ values }) => values.get("disabled") === "yes" },
      ...texts.map((name) => ({ name, read: ({ values }: Rule) => values.get(name) })),
    ],
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
