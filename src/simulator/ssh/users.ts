import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import { BlockList, isIP } from "node:net";
import type { AuthContext } from "./library.ts";
import { parseKey } from "./host_key.ts";

/** The policies of a user's group. */
export interface Policies {
  /** Whether the group has the policy `ssh`. @default {true} */
  readonly mayLogIn?: boolean;
  /** Whether it has the policy `read`. @default {true} */
  readonly mayRead?: boolean;
  /** Whether it has the policy `write`. @default {true} */
  readonly mayWrite?: boolean;
  /** Whether it has the policy `policy`, which with `write` is needed to change users. @default {true} */
  readonly mayManage?: boolean;
}

/** A user who may log in. */
export interface User extends Policies {
  readonly name: string;
  /** Undefined: no password is accepted. */
  readonly password?: string;
  /** OpenSSH public keys; RSA and ed25519, as a router accepts them. */
  readonly authorizedKeys?: readonly string[];
  /** Addresses and prefixes from which the user may log in. @default {[]} from anywhere */
  readonly from?: readonly string[];
  /** Whether this user cannot log in. @default {false} */
  readonly disabled?: boolean;
  /** Whether SSH does not accept the password, as after a key was imported. @default {false} */
  readonly keyOnly?: boolean;
}

/** The users of a router. The policies of their groups may change while they are logged in. */
export class Users {
  readonly #users: Map<string, User>;

  constructor(users: readonly User[]) {
    this.#users = new Map(users.map((user) => [user.name, user]));
  }

  list(): readonly User[] {
    return [...this.#users.values()];
  }

  find(name: string): User | undefined {
    return this.#users.get(name);
  }

  /** Adds a user, or replaces the one of that name. */
  put(user: User): void {
    this.#users.set(user.name, user);
  }

  /** Removes a user; its open sessions may do nothing more. */
  remove(name: string): void {
    this.#users.delete(name);
  }

  /** Changes the given fields; the others stay. */
  change(user: User, change: Omit<Partial<User>, "name">): void {
    this.put({ ...user, ...change });
  }
}

const acceptedKeyTypes = ["ssh-rsa", "ssh-ed25519"];

/** Whether a router accepts keys of that type for its users. */
export function isAcceptedKeyType(type: string): boolean {
  return acceptedKeyTypes.includes(type);
}

/**
 * The user that a login attempt proves to be; undefined when it proves nothing.
 *
 * @param peer the client's address
 */
export function authenticate(
  attempt: AuthContext,
  users: readonly User[],
  peer = "127.0.0.1",
): User | undefined {
  const user = users.find((candidate) => candidate.name === attempt.username);
  if (user === undefined || user.mayLogIn === false || user.disabled) return undefined;
  if (!isFrom(peer, user.from ?? [])) return undefined;
  if (attempt.method === "password") {
    return !user.keyOnly && isSame(user.password, attempt.password) ? user : undefined;
  }
  if (attempt.method !== "publickey" || !isAcceptedKeyType(typeOf(attempt.key.algo))) return undefined;
  for (const line of user.authorizedKeys ?? []) {
    const key = parseKey(line);
    if (key === undefined || !key.getPublicSSH().equals(attempt.key.data)) continue;
    // Without a signature the client only asks whether the key would be accepted.
    if (attempt.signature === undefined || attempt.blob === undefined) return user;
    if (key.verify(attempt.blob, attempt.signature, attempt.hashAlgo) === true) return user;
  }
  return undefined;
}

/** Whether a text is an address or a prefix, such as `10.0.0.0/8`. */
export function isPrefix(text: string): boolean {
  const [, address = "", length] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(length ?? 0) <= (family === 4 ? 32 : 128);
}

/** Whether an address lies in one of the prefixes, or there are none. */
export function isFrom(peer: string, prefixes: readonly string[]): boolean {
  if (prefixes.length === 0) return true;
  const known = new BlockList();
  for (const prefix of prefixes) {
    const [address = "", length] = prefix.split("/");
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    known.addSubnet(address, Number(length ?? (family === "ipv4" ? 32 : 128)), family);
  }
  return known.check(peer, isIP(peer) === 6 ? "ipv6" : "ipv4");
}

function isSame(expected: string | undefined, given: string): boolean {
  if (expected === undefined) return false;
  const [left, right] = [Buffer.from(expected), Buffer.from(given)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/** `rsa-sha2-256` and `rsa-sha2-512` are signatures of a key of type `ssh-rsa`. */
function typeOf(algorithm: string): string {
  return algorithm.startsWith("rsa-sha2-") ? "ssh-rsa" : algorithm;
}
