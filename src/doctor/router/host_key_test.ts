import assert from "node:assert/strict";
import { fingerprint, parseHostKeys } from "../../routeros/ssh/host_key.ts";
import { judgeHostKey } from "./host_key.ts";
import { makeSshKeys } from "../../../tests/fakes/ssh_keys.ts";

const [key, another] = [1, 2].map(() => {
  const line = makeSshKeys().public;
  return { line: line.split(" ").slice(0, 2).join(" "), pins: parseHostKeys(line, "r", 22) };
});
const facts = {
  address: "10.0.0.1",
  port: 2222,
  presented: key!.pins[0]!.blob,
  pins: key!.pins,
  insecure: false,
};

Deno.test("judgeHostKey() finds the pinned key to be right", () => {
  assert.equal(judgeHostKey(facts).state, "ok");
});

Deno.test("judgeHostKey() shows both fingerprints of a key that changed", () => {
  const finding = judgeHostKey({ ...facts, pins: another!.pins });
  assert.equal(finding.state, "problem");
  for (const blob of [facts.presented, another!.pins[0]!.blob]) {
    assert.ok(finding.found.includes(fingerprint(blob)));
  }
});

Deno.test("judgeHostKey() gives the line for a key that is not pinned yet", () => {
  const finding = judgeHostKey({ ...facts, pins: [] });
  assert.equal(finding.state, "problem");
  assert.match(finding.found, /--rds-host-key is not given/);
  assert.ok(finding.fix!.startsWith(`--rds-host-key '${key!.line}'`), finding.fix);
});

Deno.test("judgeHostKey() warns when nobody looks at the key", () => {
  const finding = judgeHostKey({ ...facts, pins: [], insecure: true });
  assert.deepEqual([finding.state, /not checked/.test(finding.found)], ["warning", true]);
});

Deno.test("judgeHostKey() says why the pinned keys cannot be read", () => {
  const finding = judgeHostKey({ ...facts, pins: "Cannot read the pinned host key" });
  assert.equal(finding.state, "problem");
  assert.match(finding.found, /^Cannot read the pinned host key; presented=SHA256/);
});

Deno.test("judgeHostKey() names ssh-keyscan when no key was presented", () => {
  const finding = judgeHostKey({ ...facts, presented: undefined });
  assert.equal(finding.fix, "ssh-keyscan -p 2222 -t ed25519,rsa 10.0.0.1");
});
