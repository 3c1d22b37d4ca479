import { Refusal } from "../refusal.ts";
import { parseKey } from "../ssh/host_key.ts";
import { isAcceptedKeyType, type Policies, type User, type Users } from "../ssh/users.ts";

/** Everything that a group can allow. The simulator goes by `ssh`, `read`, `write` and `policy`. */
const allPolicies = [
  ...["local", "telnet", "ssh", "ftp", "reboot", "read", "write", "policy", "test", "winbox", "password"],
  ...["web", "sniff", "sensitive", "api", "romon", "rest-api"],
] as const;

/** A group of users. */
export interface Group {
  /** Its place in `/user/group`. */
  readonly id: number;
  readonly name: string;
  /** What it allows. */
  readonly policies: readonly string[];
  readonly comment: string;
}

/** A user as an item of `/user`. */
export interface Account {
  readonly id: number;
  readonly user: User;
  readonly group: string;
  readonly comment: string;
}

/** A key as an item of `/user/ssh-keys`. */
export interface UserKey {
  readonly id: number;
  readonly user: string;
  readonly type: string;
  readonly line: string;
  /** What its owner has called it. */
  readonly owner: string;
}

/** The groups that every router has; the last may do everything. */
const plainGroups: readonly (readonly [name: string, without: readonly string[]])[] = [
  ["read", ["ftp", "write", "policy"]],
  ["write", ["ftp", "policy"]],
  ["full", []],
];

/** Users with their groups and keys, as `/user` shows them. */
export class Accounts {
  readonly users: Users;
  readonly #groups = new Map<string, Group>();
  /** Of users by name: their place in the list, their group and comment. */
  readonly #places = new Map<string, Omit<Account, "user">>();
  #lastId = 0;

  /** @param users those who are there from the start are of the group `full`, whatever else was said of them */
  constructor(users: Users) {
    this.users = users;
    for (const [name, without] of plainGroups) {
      const policies = allPolicies.filter((policy) => !without.includes(policy));
      this.#groups.set(name, { id: ++this.#lastId, name, policies, comment: "" });
    }
    for (const { name } of users.list()) this.#place(name, "full", "");
  }

  groups(): readonly Group[] {
    return [...this.#groups.values()];
  }

  findGroup(name: string): Group | undefined {
    return this.#groups.get(name);
  }

  /** Adds a group, or changes what one allows: its users feel it at once. */
  putGroup(group: Omit<Group, "id">): void {
    const id = this.#groups.get(group.name)?.id ?? ++this.#lastId;
    this.#groups.set(group.name, { ...group, id });
    for (const { user, group: name } of this.list()) {
      if (name === group.name) this.users.change(user, policiesOf(group.policies));
    }
  }

  /** @throws {Refusal} while somebody is in it. */
  removeGroup(name: string): void {
    if (this.list().some(({ group }) => group === name)) throw Refusal.inUse();
    this.#groups.delete(name);
  }

  list(): readonly Account[] {
    return this.users.list().map((user) => ({ ...this.#placeOf(user.name), user }));
  }

  /** Adds a user, or changes who has that name. */
  put(user: User, groupName: string, comment: string): void {
    const group = this.findGroup(groupName);
    if (group === undefined) throw Refusal.noMatch("group");
    this.users.put({ ...user, ...policiesOf(group.policies) });
    this.#place(user.name, groupName, comment);
  }

  remove(name: string): void {
    this.users.remove(name);
    this.#places.delete(name);
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
   * Lets a user in with a key. From then on the password is not taken over SSH, as a router has it by default.
   *
   * @throws {Refusal} when it is no public key of a type that a router takes
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

  #place(name: string, group: string, comment: string): void {
    const id = this.#places.get(name)?.id ?? ++this.#lastId;
    this.#places.set(name, { id, group, comment });
  }

  #placeOf(name: string): Omit<Account, "user"> {
    const place = this.#places.get(name);
    if (place === undefined) throw new Error(`${name} is a user without a place`);
    return place;
  }
}

/**
 * Reads the list of `policy`; a `!` before a word says that it is not allowed.
 *
 * @throws {Refusal} for a word that is none
 */
export function readPolicies(text: string): readonly string[] {
  const words = text.split(",").filter((word) => word !== "");
  const known: readonly string[] = allPolicies;
  if (!words.every((word) => known.includes(word.replace(/^!/, "")))) throw Refusal.noMatch("policy");
  return known.filter((policy) => words.includes(policy));
}

/** As a router shows them: what is not allowed too. */
export function showPolicies(policies: readonly string[]): string {
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
