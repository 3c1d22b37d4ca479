import assert from "node:assert/strict";
import { judgeLogin, type LoginFacts } from "./login.ts";

const facts: LoginFacts = {
  user: "rds-csi",
  methods: ["publickey", "password"],
  open: false,
  credentials: "key",
  failure: undefined,
};

const cases: readonly (readonly [string, Partial<LoginFacts>, string, found: RegExp, fix: RegExp])[] = [
  ["a key that is taken", {}, "ok", /logs in with its key; the router offers publickey, password/, /^$/],
  [
    "a key that is refused",
    { failure: "no" },
    "problem",
    /with its key: no/,
    /ssh-keys\/import user=rds-csi/,
  ],
  [
    "a password that is refused",
    { credentials: "password", failure: "no" },
    "problem",
    /password: no/,
    /password=/,
  ],
  [
    "no credentials",
    { credentials: "none" },
    "problem",
    /is given; the router offers publickey/,
    /--rds-key FILE/,
  ],
  [
    "no credentials, and nothing offered",
    { credentials: "none", methods: [] },
    "problem",
    /offers nothing/,
    /./,
  ],
  ["a user without a password", { open: true }, "problem", /without a password/, /\/user\/set/],
];

for (const [what, own, state, found, fix] of cases) {
  Deno.test(`judgeLogin() finds ${what} to be: ${state}`, () => {
    const finding = judgeLogin({ ...facts, ...own });
    assert.equal(finding.state, state);
    assert.match(finding.found, found);
    assert.match(finding.fix ?? "", fix);
  });
}
