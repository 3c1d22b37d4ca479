import { Buffer } from "node:buffer";
import type { Reach } from "../../host/network.ts";
import { type Finding, fine, type Fix, problem, warning } from "../../volume/model/finding.ts";
import {
  describeMismatch,
  fingerprint,
  type HostKey,
  isPinned,
  keyTypeOf,
} from "../../routeros/ssh/host_key.ts";
import { type Fragment, ros } from "../../routeros/console/command.ts";
import { resourceQuery } from "../../routeros/store/queries.ts";
import type { RouterCheck, RouterClient } from "./check.ts";
import { routerFixes } from "./fixes.ts";
import { isMissingPolicy } from "../../routeros/console/reply.ts";
import { parseRows, type Row } from "../../routeros/console/json.ts";
import { VolumeError } from "../../volume/errors.ts";

const reachName = "reach";

/** Facts about reaching the router's SSH service. */
export interface ReachFacts {
  readonly address: string;
  readonly port: number;
  /** The addresses of its name; as a text, why there are none. */
  readonly addresses: readonly string[] | string;
  /** Undefined when there was no address to try. */
  readonly reach: Reach | undefined;
}

/** Judges whether the router's name resolves and something answers there. */
export function judgeReach({ address, port, addresses, reach }: ReachFacts): Finding {
  if (typeof addresses === "string") {
    return problem(reachName, `the name ${address} cannot be resolved: ${addresses}`, routerFixes.name());
  }
  const named = addresses.includes(address) ? address : `${address} (${addresses.join(", ")})`;
  const location = `${named} port ${port}`;
  switch (reach?.state) {
    case "open":
      return fine(reachName, `${location} answers in ${Math.ceil(reach.ms)} ms`);
    case "refused":
      return problem(
        reachName,
        `${location} refuses the connection`,
        routerFixes.sshRefused(),
      );
    case "silent":
      return problem(
        reachName,
        `${location} does not answer (${reach.reason})`,
        routerFixes.portSilent(port),
      );
    default:
      return problem(
        reachName,
        `${location} cannot be reached (${reach?.reason ?? "not tried"})`,
        routerFixes.address(),
      );
  }
}

const hostKeyName = "host-key";

/** Facts about the router's host key. */
interface HostKeyFacts {
  readonly address: string;
  readonly port: number;
  /** In wire form; undefined when the router presented none. */
  readonly presented: Uint8Array | undefined;
  /** Why there was no handshake, if there was none. */
  readonly failure?: string | undefined;
  /** This machine's address, as far as it knows. */
  readonly from?: string | undefined;
  /** The keys that it should have; as a text, why they cannot be read. */
  readonly pins: readonly HostKey[] | string;
  /** Whether the driver is told not to check. */
  readonly insecure: boolean;
}

/** Judges whether the router is the intended one. */
export function judgeHostKey(facts: HostKeyFacts): Finding {
  const { presented, failure = "it did not say why", from, pins, insecure, address, port } = facts;
  if (presented === undefined) {
    return problem(hostKeyName, `the router presented none: ${failure}`, routerFixes.sshClosed(from));
  }
  const shown = `${fingerprint(presented)} (${keyTypeOf(presented)})`;
  const line = routerFixes.hostKeyLine(publicLine(presented), address, port);
  if (typeof pins === "string") return problem(hostKeyName, `${pins}; presented=${shown}`, line);
  if (insecure) {
    return warning(
      hostKeyName,
      `not checked because --rds-insecure-skip-verify is given; presented=${shown}`,
      line,
    );
  }
  if (pins.length === 0) return problem(hostKeyName, `--rds-host-key is not given; presented=${shown}`, line);
  if (isPinned(pins, presented)) return fine(hostKeyName, `matches the pinned key: ${shown}`);
  return problem(hostKeyName, describeMismatch(pins, presented), line);
}

/** A public key in OpenSSH's form. */
function publicLine(blob: Uint8Array): string {
  return `${keyTypeOf(blob)} ${Buffer.from(blob).toString("base64")}`;
}

const loginName = "login";

/** Facts about logging in. */
export interface LoginFacts {
  readonly user: string;
  /** The server's login methods; undefined when it did not say. */
  readonly methods: readonly string[] | undefined;
  /** Whether the server lets the user in without authentication. */
  readonly open: boolean;
  /** The driver's credentials. */
  readonly credentials: "key" | "password" | "none";
  /** Why the login failed; undefined when it succeeded. */
  readonly failure: string | undefined;
  /** This machine's address, as far as it knows. */
  readonly from?: string | undefined;
  /** The state of the file with the key or the password. @default {"usable"} */
  readonly secret?: SecretState;
}

/**
 * The state of a file of credentials: `public` is the wrong half of a key, `unusable` is a key with a passphrase, of a
 * type that no router accepts, or no key at all.
 */
export type SecretState = "usable" | "missing" | "public" | "unusable";

/** Judges whether the driver can log in. */
export function judgeLogin(facts: LoginFacts): Finding {
  const { user, methods, open, credentials, failure } = facts;
  if (open) {
    return problem(
      loginName,
      `${user} gets in without a password`,
      routerFixes.noPassword(user),
    );
  }
  const offered = methods === undefined ? "" : `; the router offers ${methods.join(", ") || "nothing"}`;
  if (credentials === "none") {
    return problem(
      loginName,
      `neither --rds-key nor --rds-password-file is given${offered}`,
      routerFixes.credentials(),
    );
  }
  const shown = credentials === "key" ? "its key" : "its password";
  if (failure === undefined) return fine(loginName, `${user} logs in with ${shown}${offered}`);
  return problem(
    loginName,
    `${user} cannot log in with ${shown}: ${failure}${offered}`,
    fixFor(facts),
  );
}

/** A refused login is fixed on the router; a file that cannot be used never reached it. */
function fixFor({ user, credentials, secret, from }: LoginFacts): Fix {
  const isKey = credentials === "key";
  switch (secret) {
    case "missing":
      return routerFixes.secretMissing(isKey ? "rds-key" : "rds-password-file");
    case "public":
      return routerFixes.keyPublic();
    case "unusable":
      return routerFixes.keyUnusable(user);
    default:
      return isKey ? routerFixes.keyRefused(user, from) : routerFixes.passwordRefused(user, from);
  }
}

const policyName = "policy";

/** A slot that no disk has: the driver never makes this form. */
const nobody = "rds-csi-doctor-tries-nothing";

/** Checks whether the user may read and write. */
export const policyCheck: RouterCheck = {
  name: policyName,
  essential: true,
  async run(router, { user }) {
    const unreadable = await refusalOf(() => router.read(policyName, resourceQuery));
    if (unreadable !== undefined) return [judgeUnreadable(unreadable, user)];
    const statement = ros`/disk set [find where slot=${nobody}] comment=${""}`;
    const refusal = await router.attempt(policyName, statement);
    const isMissing = refusal !== undefined && isMissingPolicy(refusal);
    return [judgePolicy(refusal, user, isMissing ? await groupOf(router, user) : undefined)];
  },
};

/** The group of a user on the router. */
export interface UserGroup {
  readonly name: string;
  /** Its policies; those that it lacks have a `!` before them, or are left out. */
  readonly policies: readonly string[];
}

/** Undefined when the router does not show it. */
async function groupOf(router: Pick<RouterClient, "read">, user: string): Promise<UserGroup | undefined> {
  const first = async (query: Fragment) =>
    parseRows(await router.read(policyName, query), "list of users")[0];
  try {
    const account = await first(ros`/user print detail as-value where name=${user}`);
    const name = account?.text("group", "") ?? "";
    const group = await first(ros`/user group print detail as-value where name=${name}`);
    return group === undefined ? undefined : { name, policies: group.texts("policy") };
  } catch (error) {
    // The refusal is reported, with or without its group.
    if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "invalid")) return undefined;
    throw error;
  }
}

/** The router's message when it refuses a read for lack of a policy; undefined when it does not. */
async function refusalOf(read: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await read();
    return undefined;
  } catch (error) {
    if (VolumeError.is(error, "unavailable") && isMissingPolicy(error.message)) return error.message;
    throw error;
  }
}

/** A person reads the finding: no decision depends on its words. */
function judgeUnreadable(refusal: string, user: string): Finding {
  return problem(policyName, `${user} may not read: ${refusal}`, routerFixes.policy(user));
}

/**
 * Judges the user's policies by the answer to a change that changes nothing.
 *
 * Some routers refuse an empty change, so their message is examined. A person reads the finding, and no decision
 * depends on it.
 */
export function judgePolicy(refusal: string | undefined, user: string, group?: UserGroup): Finding {
  if (refusal === undefined) return fine(policyName, `${user} may read and write`);
  if (isMissingPolicy(refusal)) {
    return problem(
      policyName,
      `${user} may read but not write: ${refusal}${describeGroup(group)}`,
      routerFixes.policy(user),
    );
  }
  if (/no such item|expected item id/i.test(refusal)) return fine(policyName, `${user} may read and write`);
  return warning(
    policyName,
    `${user} may read; it is not known whether it may write, because the router refused a change without effect: ${refusal}`,
    routerFixes.policyUnclear(),
  );
}

/** The end of a sentence about the policies that the driver needs. */
function describeGroup(group: UserGroup | undefined): string {
  if (group === undefined) return "";
  const missing = ["ssh", "read", "write"].filter((policy) => !group.policies.includes(policy));
  if (missing.length === 0) return `; its group ${group.name} has the policies ssh, read and write`;
  return `; its group ${group.name} lacks ${missing.join(" and ")}`;
}

const sessionsName = "ssh-sessions";

/** Two controllers (one leads), a command such as this one, and a person. */
const minSessions = 4n;

/** Checks whether the SSH service allows enough sessions. */
export const sessionsCheck: RouterCheck = {
  name: sessionsName,
  essential: false,
  async run(router) {
    const query = ros`/ip service print detail as-value where name=${"ssh"}`;
    return [judgeSessions(parseRows(await router.read(sessionsName, query), "list of services"))];
  },
};

/** Judges the row of the SSH service. */
export function judgeSessions(rows: readonly Row[]): Finding {
  const service = rows.find((row) => row.text("name", "") === "ssh");
  if (service === undefined || !service.hasInteger("max-sessions")) {
    return fine(sessionsName, "the router names no limit");
  }
  const most = service.integer("max-sessions");
  if (most >= minSessions) return fine(sessionsName, `${most} at a time`);
  return warning(
    sessionsName,
    `${most} at a time: too few for two controllers, this command and a person`,
    routerFixes.sessions(),
  );
}
