import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import type { AuthContext } from "./library.ts";
import { parseKey } from "./host_key.ts";

/** What a user's group allows. */
export interface Policies {
  /** Whether the group has the policy `ssh`. @default {true} */
  readonly mayLogIn?: boolean;
  /** Whether it has the policy `read`. @default {true} */
  readonly mayRead?: boolean;
  /** Whether it has the policy `write`. @default {true} */
  readonly mayWrite?: boolean;
}

/** Someone who may log in. */
export interface User extends Policies {
  readonly name: string;
  /** Undefined: no password opens the door. */
  readonly password?: string;
  /** OpenSSH public keys; RSA and ed25519, as a router takes them. */
  readonly authorizedKeys?: readonly string[];
}

/** The users of a router. What their groups allow may change while they are logged in. */
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

  /** Changes what is given; the rest stays. */
  allow(user: User, policies: Policies): void {
    this.#users.set(user.name, { ...user, ...policies });
  }
}

const acceptedKeyTypes = ["ssh-rsa", "ssh-ed25519"];

/** The user that an attempt to log in proves to be; undefined when it proves nothing. */
export function authenticate(attempt: AuthContext, users: readonly User[]): User | undefined {
  const user = users.find((candidate) => candidate.name === attempt.username);
  if (user === undefined || user.mayLogIn === false) return undefined;
  if (attempt.method === "password") return isSame(user.password, attempt.password) ? user : undefined;
  if (attempt.method !== "publickey" || !acceptedKeyTypes.includes(typeOf(attempt.key.algo))) {
    return undefined;
  }
  for (const line of user.authorizedKeys ?? []) {
    const key = parseKey(line);
    if (key === undefined || !key.getPublicSSH().equals(attempt.key.data)) continue;
    // Without a signature the client only asks whether the key would do.
    if (attempt.signature === undefined || attempt.blob === undefined) return user;
    if (key.verify(attempt.blob, attempt.signature, attempt.hashAlgo) === true) return user;
  }
  return undefined;
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
