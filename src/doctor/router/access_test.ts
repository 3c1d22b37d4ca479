import assert from "node:assert/strict";
import { makeSshKeys } from "../../../tests/fakes/ssh_keys.ts";
import { parseRows } from "../../routeros/console/json.ts";
import { fingerprint, parseHostKeys } from "../../routeros/ssh/host_key.ts";
import type { Finding } from "../../volume/model/finding.ts";
import {
  judgeHostKey,
  judgeLogin,
  judgePolicy,
  judgeReach,
  judgeSessions,
  type LoginFacts,
  type ReachFacts,
} from "./access.ts";

const [key, another] = [1, 2].map(() => {
  const line = makeSshKeys().public;
  return { line: line.split(" ").slice(0, 2).join(" "), pins: parseHostKeys(line, "r", 22) };
});
const presented = key!.pins[0]!.blob;

function reach(own: Partial<ReachFacts>): Finding {
  const open = { state: "open", ms: 2.5 } as const;
  return judgeReach({ address: "router", port: 22, addresses: ["10.0.0.1"], reach: open, ...own });
}

function hostKey(own: Partial<Parameters<typeof judgeHostKey>[0]>): Finding {
  return judgeHostKey({
    address: "10.0.0.1",
    port: 2222,
    presented,
    pins: key!.pins,
    insecure: false,
    ...own,
  });
}

function login(own: Partial<LoginFacts>): Finding {
  const methods = ["publickey", "password"];
  return judgeLogin({
    user: "rds-csi",
    methods,
    open: false,
    credentials: "key",
    failure: undefined,
    ...own,
  });
}

const policy = (refusal?: string, ...policies: string[]) =>
  judgePolicy(refusal, "rds-csi", policies.length === 0 ? undefined : { name: "box", policies });
const sessions = (...rows: readonly unknown[]) => judgeSessions(parseRows(JSON.stringify(rows), "services"));

const mayWrite = /policy=ssh,read,write.*name="rds-csi"/;
const booting =
  /^wait if the router is booting; else .*\/ip\/service\/print detail.*add 10\.1\.2\.3, in a pod/;
const noPassword = login({ credentials: "password", failure: "no" });
const noPasswordFromPod = login({ credentials: "password", failure: "no", from: "10.42.0.7" });
const fromPod =
  /the user's address .*10\.42\.0\.7, in a pod without masquerading the pod network: \/user\/set .*address=NODES/;
const noMethods = login({ credentials: "none", methods: [] });
const cases: readonly (readonly [what: string, Finding, state: string, found: RegExp, fix?: RegExp])[] = [
  ["a router that answers", reach({}), "ok", /^router \(10\.0\.0\.1\) port 22 answers in 3 ms$/],
  [
    "no address",
    reach({ addresses: "not found", reach: undefined }),
    "problem",
    /not found/,
    /--rds-address to the router's address instead of its name/,
  ],
  [
    "a refusal",
    reach({ reach: { state: "refused", reason: "no" } }),
    "problem",
    /refuses/,
    /\/ip\/service\/enable/,
  ],
  [
    "silence",
    reach({ reach: { state: "silent", reason: "no" } }),
    "problem",
    /does not answer/,
    /^if the address is right and the router is on, .*firewall.* action=accept place-before=0/,
  ],
  [
    "no route",
    reach({ reach: { state: "failed", reason: "EHOST" } }),
    "problem",
    /EHOST/,
    /^wait if the router is booting; else set --rds-address/,
  ],
  ["the pinned key", hostKey({}), "ok", /^matches the pinned key/],
  ["an unchecked key", hostKey({ pins: [], insecure: true }), "warning", /not checked/, /--rds-host-key/],
  [
    "pins that cannot be read",
    hostKey({ pins: "Unreadable" }),
    "problem",
    /^Unreadable; presented=SHA256/,
    /./,
  ],
  [
    "no handshake",
    hostKey({ presented: undefined, failure: "it closed the connection", from: "10.1.2.3" }),
    "problem",
    /none: it closed the connection$/,
    booting,
  ],
  ["a key that is taken", login({}), "ok", /logs in with its key; the router offers publickey, password/],
  [
    "a refused key",
    login({ failure: "no" }),
    "problem",
    /with its key: no/,
    /ssh-keys\/import user="rds-csi" /,
  ],
  ["a refused password", noPassword, "problem", /password: no/, /password=/],
  ["a refused key from a pod", login({ failure: "no", from: "10.42.0.7" }), "problem", /./, fromPod],
  ["a refused password from a pod", noPasswordFromPod, "problem", /./, fromPod],
  ["no credentials", login({ credentials: "none" }), "problem", /offers publickey/, /--rds-key FILE/],
  ["no credentials, and nothing offered", noMethods, "problem", /offers nothing/, /./],
  ["a user without a password", login({ open: true }), "problem", /without a password/, /\/user\/set/],
  ["a change of nothing", policy(), "ok", /read and write/],
  ["a change of no item", policy('"no such item"'), "ok", /read and write/],
  ["a change without an id", policy('"expected item id (line 1 column 11)"'), "ok", /read and write/],
  ["no policy to write", policy('"not enough permissions (9)"'), "problem", /not write/, mayWrite],
  [
    "a group without write",
    policy('"not allowed (9)"', "ssh", "read", "!write"),
    "problem",
    /box lacks write$/,
    mayWrite,
  ],
  [
    "a group with all",
    policy('"not allowed (9)"', "ssh", "read", "write"),
    "problem",
    /box has the policies/,
    mayWrite,
  ],
  ["a refusal in other words", policy('"amber kettle"'), "warning", /it is not known/, /group\/print/],
  ["twenty sessions", sessions({ name: "ssh", "max-sessions": 20 }), "ok", /20 at a time/],
  ["four sessions", sessions({ name: "ssh", "max-sessions": "4" }), "ok", /4 at a time/],
  ["three sessions", sessions({ name: "ssh", "max-sessions": 3 }), "warning", /too few/, /max-sessions=20/],
  ["no limit of sessions", sessions({ name: "ssh" }), "ok", /no limit/],
  ["no service listed", sessions(), "ok", /no limit/],
];

for (const [what, finding, state, found, fix = /^$/] of cases) {
  Deno.test(`doctor finds access with ${what} to be: ${state}`, () => {
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
    assert.match(finding.fix ?? "", fix);
  });
}

Deno.test("judgeHostKey() shows both fingerprints of a key that changed", () => {
  const { state, found } = hostKey({ pins: another!.pins });
  assert.equal(state, "problem");
  for (const blob of [presented, another!.pins[0]!.blob]) assert.ok(found.includes(fingerprint(blob)));
});

Deno.test("judgeHostKey() prints the line for a key that is not pinned yet", () => {
  const { state, found, fix } = hostKey({ pins: [] });
  assert.equal(state, "problem");
  assert.match(found, /--rds-host-key is not given/);
  assert.ok(fix!.startsWith(`--rds-host-key '${key!.line}'`), fix);
});
