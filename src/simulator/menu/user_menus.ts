import { normalisePath } from "../model/paths.ts";
import type { Router } from "../model/router.ts";
import { Refusal } from "../refusal.ts";
import { isAcceptedKeyType, isPrefix, type Policies, type User, type Users } from "../ssh/users.ts";
import { readYesNo, required } from "./inputs.ts";
import { makeItemMenu, type Shape } from "./item_menu.ts";
import type { Menu, Values } from "./menu.ts";
import { parseKey } from "../ssh/host_key.ts";

/** `/user`, `/user/group` and `/user/ssh-keys`. */
export function userMenus(router: Router, accounts: Accounts): readonly Menu[] {
  return [
    makeItemMenu(userShape(accounts), {
      add: (values) => addUser(accounts, values),
      set: (account, values) => setUser(accounts, account, values),
      remove: ({ user }) => accounts.remove(user.name),
    }),
    makeItemMenu(groupShape(accounts), {
      add: (values) => addGroup(accounts, values),
      set: (group, values) => setGroup(accounts, group, values),
      remove: ({ name }) => accounts.removeGroup(name),
    }),
    makeItemMenu(keyShape(accounts), {
      import: (values) => importKey(router, accounts, values),
      remove: (key) => accounts.removeKey(key),
    }),
  ];
}

function userShape(accounts: Accounts): Shape<Account> {
  return {
    path: "user",
    verbs: ["add", "set", "remove", "enable", "disable", "print", "find", "get"],
    columns: ["name", "group", "address"],
    texts: ["name", "group", "password", "address", "comment", "disabled"],
    properties: [
      { name: "disabled", isFlag: true, read: ({ user }) => user.disabled ?? false },
      { name: "name", read: ({ user }) => user.name },
      { name: "group", read: ({ group }) => group },
      { name: "address", read: ({ user }) => (user.from ?? []).join(",") },
      { name: "comment", read: ({ comment }) => comment === "" ? undefined : comment },
    ],
    items: () => accounts.list(),
    nameOf: ({ user }) => user.name,
  };
}

function groupShape(accounts: Accounts): Shape<Group> {
  return {
    path: "user/group",
    verbs: ["add", "set", "remove", "print", "find", "get"],
    columns: ["name", "policy"],
    texts: ["name", "policy", "comment"],
    properties: [
      { name: "name", read: ({ name }) => name },
      { name: "policy", read: ({ policies }) => showPolicies(policies) },
      { name: "comment", read: ({ comment }) => comment === "" ? undefined : comment },
    ],
    items: () => accounts.groups(),
    nameOf: ({ name }) => name,
  };
}

function keyShape(accounts: Accounts): Shape<UserKey> {
  return {
    path: "user/ssh-keys",
    verbs: ["import", "remove", "print", "find", "get"],
    columns: ["user", "key-type", "key-owner"],
    texts: ["public-key-file", "user"],
    properties: [
      { name: "user", read: ({ user }) => user },
      { name: "key-type", read: ({ type }) => type },
      { name: "key-owner", read: ({ owner }) => owner },
    ],
    items: () => accounts.keys(),
    nameOf: ({ owner }) => owner,
  };
}

function addUser(accounts: Accounts, values: Values): void {
  const name = required(values, "name");
  if (accounts.users.find(name) !== undefined) throw Refusal.alreadyHave("user");
  const user = { name, password: "", ...readUser(values) };
  accounts.put(user, required(values, "group"), values.get("comment") ?? "");
}

function setUser(accounts: Accounts, { user, group, comment }: Account, values: Values): void {
  const name = values.get("name") ?? user.name;
  const changed = { ...user, ...readUser(values), name };
  if (name !== user.name && accounts.users.find(name) !== undefined) throw Refusal.alreadyHave("user");
  accounts.put(changed, values.get("group") ?? group, values.get("comment") ?? comment);
  if (name !== user.name) accounts.remove(user.name);
}

function readUser(values: Values): Partial<User> {
  const [password, address, disabled] = ["password", "address", "disabled"].map((name) => values.get(name));
  const from = address?.split(",").filter((one) => one !== "");
  if (from?.every(isPrefix) === false) throw Refusal.noMatch("address");
  return {
    ...(password === undefined ? {} : { password }),
    ...(from === undefined ? {} : { from }),
    ...(disabled === undefined ? {} : { disabled: readYesNo("disabled", disabled) }),
  };
}

function addGroup(accounts: Accounts, values: Values): void {
  const name = required(values, "name");
  if (accounts.findGroup(name) !== undefined) throw Refusal.alreadyHave("group");
  const policies = readPolicies(values.get("policy") ?? "");
  accounts.putGroup({ name, policies, comment: values.get("comment") ?? "" });
}

function setGroup(accounts: Accounts, group: Group, values: Values): void {
  if ((values.get("name") ?? group.name) !== group.name) throw Refusal.noMatch("name");
  const given = values.get("policy");
  const policies = given === undefined ? group.policies : readPolicies(given);
  accounts.putGroup({ name: group.name, policies, comment: values.get("comment") ?? group.comment });
}

/** Whether a real router removes the file is unknown; here it stays. */
function importKey({ files }: Router, accounts: Accounts, values: Values): void {
  const file = files.find(normalisePath(required(values, "public-key-file")));
  if (file === undefined) throw Refusal.noSuchItem();
  accounts.addKey(required(values, "user"), file.contents);
}

/** All policies of a group. Only `ssh`, `read`, `write` and `policy` have an effect in the simulator. */
const allPolicies = [
  ...["local", "telnet", "ssh", "ftp", "reboot", "read", "write", "policy", "test", "winbox", "password"],
  ...["web", "sniff", "sensitive", "api", "romon", "rest-api"],
] as const;

/** A group of users. */
interface Group {
  /** Its position in `/user/group`. */
  readonly id: number;
  readonly name: string;
  /** The allowed policies. */
  readonly policies: readonly string[];
  readonly comment: string;
}

/** A user as an item of `/user`. */
interface Account {
  readonly id: number;
  readonly user: User;
  readonly group: string;
  readonly comment: string;
}

/** A key as an item of `/user/ssh-keys`. */
interface UserKey {
  readonly id: number;
  readonly user: string;
  readonly type: string;
  readonly line: string;
  /** The owner's name for it. */
  readonly owner: string;
}

/** The groups of every router; the last may do everything. */
const plainGroups: readonly (readonly [name: string, without: readonly string[]])[] = [
  ["read", ["ftp", "write", "policy"]],
  ["write", ["ftp", "policy"]],
  ["full", []],
];

/** Users with their groups and keys, as `/user` shows them. */
export class Accounts {
  readonly users: Users;
  readonly #groups = new Map<string, Group>();
  /** The position, group and comment of each user, by name. */
  readonly #locations = new Map<string, Omit<Account, "user">>();
  #lastId = 0;

  /** @param users the initial users, who are in the group `full`, whatever else their options say */
  constructor(users: Users) {
    this.users = users;
    for (const [name, without] of plainGroups) {
      const policies = allPolicies.filter((policy) => !without.includes(policy));
      this.#groups.set(name, { id: ++this.#lastId, name, policies, comment: "" });
    }
    for (const { name } of users.list()) this.#location(name, "full", "");
  }

  groups(): readonly Group[] {
    return [...this.#groups.values()];
  }

  findGroup(name: string): Group | undefined {
    return this.#groups.get(name);
  }

  /** Adds a group, or changes its policies: this takes effect for its users at once. */
  putGroup(group: Omit<Group, "id">): void {
    const id = this.#groups.get(group.name)?.id ?? ++this.#lastId;
    this.#groups.set(group.name, { ...group, id });
    for (const { user, group: name } of this.list()) {
      if (name === group.name) this.users.change(user, policiesOf(group.policies));
    }
  }

  /** @throws {Refusal} while it has users. */
  removeGroup(name: string): void {
    if (this.list().some(({ group }) => group === name)) throw Refusal.inUse();
    this.#groups.delete(name);
  }

  list(): readonly Account[] {
    return this.users.list().map((user) => ({ ...this.#locationOf(user.name), user }));
  }

  /** Adds a user, or changes the one of that name. */
  put(user: User, groupName: string, comment: string): void {
    const group = this.findGroup(groupName);
    if (group === undefined) throw Refusal.noMatch("group");
    this.users.put({ ...user, ...policiesOf(group.policies) });
    this.#location(user.name, groupName, comment);
  }

  remove(name: string): void {
    this.users.remove(name);
    this.#locations.delete(name);
  }

  keys(): readonly UserKey[] {
    return this.list().flatMap(({ id, user }) =>
      (user.authorizedKeys ?? []).flatMap((line, index) => {
        const key = parseKey(line);
        return key === undefined ? [] : [{
          id: id * 1000 + index,
          user: user.name,
          type: key.type.replace(/^ssh-/, ""),
          line,
          owner: key.comment ?? "",
        }];
      })
    );
  }

  /**
   * Adds a key for a user. From then on SSH does not accept the password, which is a router's default.
   *
   * @throws {Refusal} when it is no public key of a type that a router accepts
   */
  addKey(name: string, text: string): void {
    const user = this.users.find(name);
    if (user === undefined) throw Refusal.noMatch("user");
    const key = parseKey(text);
    if (key === undefined || key.isPrivateKey() || !isAcceptedKeyType(key.type)) throw Refusal.badKey();
    const authorizedKeys = [...user.authorizedKeys ?? [], text.trim()];
    this.users.put({ ...user, authorizedKeys, keyOnly: true });
  }

  removeKey({ user: name, line }: UserKey): void {
    const user = this.users.find(name);
    if (user === undefined) return;
    const authorizedKeys = (user.authorizedKeys ?? []).filter((one) => one !== line);
    this.users.put({ ...user, authorizedKeys, keyOnly: user.keyOnly === true && authorizedKeys.length > 0 });
  }

  #location(name: string, group: string, comment: string): void {
    const id = this.#locations.get(name)?.id ?? ++this.#lastId;
    this.#locations.set(name, { id, group, comment });
  }

  #locationOf(name: string): Omit<Account, "user"> {
    const location = this.#locations.get(name);
    if (location === undefined) throw new Error(`${name} is a user without a place`);
    return location;
  }
}

/**
 * Parses the list of `policy`; a `!` before a word means that it is not allowed.
 *
 * @throws {Refusal} for an unknown word
 */
function readPolicies(text: string): readonly string[] {
  const words = text.split(",").filter((word) => word !== "");
  const known: readonly string[] = allPolicies;
  if (!words.every((word) => known.includes(word.replace(/^!/, "")))) throw Refusal.noMatch("policy");
  return known.filter((policy) => words.includes(policy));
}

/** As a router shows them, including those that are not allowed. */
function showPolicies(policies: readonly string[]): string {
  const allowed = allPolicies.filter((policy) => policies.includes(policy));
  const refused = allPolicies.filter((policy) => !policies.includes(policy));
  return [...allowed, ...refused.map((policy) => `!${policy}`)].join(",");
}

function policiesOf(policies: readonly string[]): Required<Policies> {
  return {
    mayLogIn: policies.includes("ssh"),
    mayRead: policies.includes("read"),
    mayWrite: policies.includes("write"),
    mayManage: policies.includes("policy"),
  };
}
