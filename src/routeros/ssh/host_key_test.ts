import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import assert from "node:assert/strict";
import { throwsWith } from "../../../tests/fakes/volume_errors.ts";
import { describeMismatch, fingerprint, isPinned, parseHostKeys } from "./host_key.ts";

/** A key in wire form: the type, and bytes with that value. */
function blobOf(type: string, fill: number): Uint8Array {
  const name = new TextEncoder().encode(type);
  const blob = new Uint8Array(4 + name.length + 4 + 32).fill(fill);
  new DataView(blob.buffer).setUint32(0, name.length);
  blob.set(name, 4);
  new DataView(blob.buffer).setUint32(4 + name.length, 32);
  return blob;
}

const first = blobOf("ssh-ed25519", 1);
const second = blobOf("ssh-rsa", 2);
const one = `ssh-ed25519 ${Buffer.from(first).toString("base64")}`;
const two = `ssh-rsa ${Buffer.from(second).toString("base64")}`;

function blobs(text: string, host = "10.0.0.1", port = 22): Uint8Array[] {
  return parseHostKeys(text, host, port).map((key) => key.blob);
}

for (
  const [name, line] of [
    ["a public key", one],
    ["a public key with a comment", `${one} admin@router`],
    ["a known_hosts line", `10.0.0.1 ${one}`],
    ["a known_hosts line of another name", `router.lan ${one} x`],
    ["a known_hosts line with a port", `[10.0.0.1]:2222 ${one}`],
    ["a hashed known_hosts line", `|1|c2FsdA==|aGFzaA== ${one}`],
    ["a line among comments and empty lines", `# router\n\n  ${one}  \r\n`],
  ] as const
) {
  Deno.test(`parseHostKeys() reads ${name}`, () => {
    assert.deepEqual(blobs(line), [first]);
  });
}

Deno.test("parseHostKeys() uses of several known_hosts lines those that name the router", () => {
  const salt = Buffer.from("0123456789abcdefghij");
  const hash = createHmac("sha1", salt).update("[10.0.0.1]:2222").digest("base64");
  const text = `10.0.0.2 ${one}\n|1|${salt.toString("base64")}|${hash} ${two}\nother,[10.0.0.1]:2222 ${one}`;
  assert.deepEqual(blobs(text, "10.0.0.1", 2222), [second, first]);
  assert.deepEqual(blobs(text, "10.0.0.2"), [first]);
});

Deno.test("parseHostKeys() throws invalid when several lines name only other hosts", () => {
  throwsWith(() => blobs(`a ${one}\nb ${two}`), "invalid");
});

/** A known_hosts file as a person has it: other hosts, and types of keys that no router presents. */
const others = [
  "# home",
  `@cert-authority *.example.org ${two}`,
  "github.com sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t",
  "old.lan ssh-dss AAAA",
  "10.0.0.1 ssh-ed25519-cert-v01@openssh.com AAAA",
  "git.lan ssh-foo AAAA",
  "@revoked git.lan ssh-foo AAAA",
  "old.lan ssh-ed25519 !!!!",
  `192.168.*,!10.0.0.1 ${two}`,
  `10.0.0.11,10-0-0-1 ${two}`,
];

Deno.test("parseHostKeys() skips other hosts and types of keys of a known_hosts file", () => {
  assert.deepEqual(blobs([...others, `nas,10.0.0.1 ${one}`].join("\n")), [first]);
});

Deno.test("parseHostKeys() uses no key of another host where the router's own line is of another type", () => {
  throwsWith(() => blobs(others.join("\n")), "invalid", /each line for it is of another type/);
  const text = `nas ${one}\n10.0.0.1 sk-ssh-ed25519@openssh.com AAAA`;
  throwsWith(() => blobs(text), "invalid", /each line for it is of another type/);
});

for (
  const [hosts, isNamed] of [
    ["*", true],
    ["10.0.0.?", true],
    ["10.0.*", true],
    ["10.0.0", false],
    ["*,!10.0.0.1", false],
    ["*,!10.0.0.*", false],
    ["10x0y0z1", false],
    ["!10.0.0.1", false],
  ] as const
) {
  Deno.test(`parseHostKeys() ${isNamed ? "uses" : "skips"} a known_hosts line for ${hosts}`, () => {
    assert.deepEqual(blobs(`${hosts} ${one}\n10.0.0.1 ${two}`), isNamed ? [first, second] : [second]);
  });
}

Deno.test("parseHostKeys() uses no revoked key", () => {
  assert.deepEqual(blobs(`10.0.0.1 ${one}\n10.0.0.1 ${two}\n@revoked * ${one}`), [second]);
  throwsWith(() => blobs(`10.0.0.1 ${one}\n@revoked 10.0.0.1 ${one}`), "invalid", /revoked/);
});

for (
  const line of [
    "garbage here",
    "@revoked ssh-foo AAAA",
    "10.0.0.* ssh-foo AAAA",
    "10.0.0.1 ssh-ed25519 !!!!",
    `10.0.0.1 ssh-rsa ${one.split(" ")[1]}`,
  ]
) {
  Deno.test(`parseHostKeys() names the number of a bad line: ${line.slice(0, 20)}`, () => {
    throwsWith(() => blobs(`# home\n\n10.0.0.1 ${one}\n${line}`), "invalid", /: line=4; expected/);
  });
}

for (
  const line of [
    "",
    "# nothing",
    "ssh-ed25519",
    "ssh-ed25519 !!!!",
    `ssh-rsa ${Buffer.from(first).toString("base64")}`,
    "ssh-dss AAAA",
    "SHA256:abcdef",
    `@cert-authority * ${one}`,
    `@revoked * ${one}`,
    `10.0.0.1 ${Buffer.from(first).toString("base64")}`,
    `${one}\ngarbage here`,
  ]
) {
  Deno.test(`parseHostKeys() throws invalid for ${JSON.stringify(line.slice(0, 30))}`, () => {
    throwsWith(() => blobs(line), "invalid");
  });
}

Deno.test("isPinned() accepts exactly the pinned keys", () => {
  const pins = parseHostKeys(`${one}\n${two}`, "h", 22);
  assert.equal(isPinned(pins, Buffer.from(first)), true);
  assert.equal(isPinned(pins, second), true);
  assert.equal(isPinned(pins, blobOf("ssh-ed25519", 3)), false);
  assert.equal(isPinned(pins, first.subarray(0, -1)), false);
  assert.equal(isPinned(pins, new Uint8Array()), false);
  assert.equal(isPinned([], first), false);
});

Deno.test("describeMismatch() names both fingerprints", () => {
  const text = describeMismatch(parseHostKeys(one, "h", 22), second);
  assert.ok(text.includes(fingerprint(first)) && text.includes(fingerprint(second)), text);
  assert.match(fingerprint(first), /^SHA256:[A-Za-z0-9+/]{43}$/);
});
