import {
  type Account,
  type Accounts,
  type Group,
  readPolicies,
  showPolicies,
  type UserKey,
} from "../model/accounts.ts";
import { normalisePath } from "../model/paths.ts";
import type { Router } from "../model/router.ts";
import { Refusal } from "../refusal.ts";
import { isPrefix, type User } from "../ssh/users.ts";
import { readYesNo, required } from "./inputs.ts";
import { makeItemMenu, type Shape } from "./item_menu.ts";
import type { Menu, Values } from "./menu.ts";

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
    words: ["name", "group", "password", "address", "comment", "disabled"],
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
    words: ["name", "policy", "comment"],
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
    words: ["public-key-file", "user"],
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

/** Whether a router takes the file away then is not known; here it stays. */
function importKey({ files }: Router, accounts: Accounts, values: Values): void {
  const file = files.find(normalisePath(required(values, "public-key-file")));
  if (file === undefined) throw Refusal.noSuchItem();
  accounts.addKey(required(values, "user"), file.contents);
}
