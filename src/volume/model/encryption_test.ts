import assert from "node:assert/strict";
import { refusal } from "../../../tests/fakes/refusal.ts";
import { headerBytes, parsePassphrases, usableBytes, withHeader } from "./encryption.ts";

const long = "x".repeat(20);

Deno.test("withHeader() makes room for the header, and leaves open what is open", () => {
  const range = { requiredBytes: 5n, limitBytes: 9n };
  assert.equal(withHeader(range, false), range);
  assert.deepEqual(withHeader(range, true), {
    requiredBytes: 5n + headerBytes,
    limitBytes: 9n + headerBytes,
  });
  assert.deepEqual(withHeader({ requiredBytes: 0n, limitBytes: 0n }, true), {
    requiredBytes: 0n,
    limitBytes: 0n,
  });
  assert.throws(() => withHeader({ requiredBytes: -1n, limitBytes: 0n }, true), refusal("invalid"));
  assert.throws(() => withHeader({ requiredBytes: 9n, limitBytes: 5n }, true), refusal("out-of-range"));
});

Deno.test("usableBytes() is what the header leaves", () => {
  assert.equal(usableBytes(headerBytes + 7n, true), 7n);
  assert.equal(usableBytes(headerBytes - 1n, true), 0n);
  assert.equal(usableBytes(7n, false), 7n);
});

Deno.test("parsePassphrases() takes them byte for byte, and counts bytes of UTF-8", () => {
  assert.deepEqual(parsePassphrases({ encryptionPassphrase: `${long}\n`, other: "x" }), {
    current: `${long}\n`,
    next: undefined,
  });
  for (const text of ["ä".repeat(10), "\0".repeat(20), `\uFEFF${long}`, `\n${long}\r\n`]) {
    assert.equal(parsePassphrases({ encryptionPassphrase: text }).current, text);
  }
  const next = `${long}y`;
  assert.equal(parsePassphrases({ encryptionPassphrase: long, encryptionPassphraseNew: next }).next, next);
  assert.equal(
    parsePassphrases({ encryptionPassphrase: long, encryptionPassphraseNew: long }).next,
    undefined,
  );
  assert.equal(parsePassphrases({ encryptionPassphrase: long, encryptionPassphraseNew: "" }).next, undefined);
});

Deno.test("parsePassphrases() shows no passphrase in its refusals", () => {
  const wrong: Record<string, string>[] = [
    {},
    { encryptionPassphrase: "" },
    { encryptionPassphrase: "nineteen characters" },
    { encryptionPassphraseNew: long },
    { encryptionPassphrase: long, encryptionPassphraseNew: "short one" },
    // What a server makes of bytes that are no UTF-8, and what an encoder would replace.
    { encryptionPassphrase: `${long}\uFFFD` },
    { encryptionPassphrase: `${long}\uD800` },
    JSON.parse(`{"__proto__": {"encryptionPassphrase": "${long}"}}`),
  ];
  for (const secrets of wrong) {
    assert.throws(() => parsePassphrases(secrets), (error: Error) => {
      for (const value of ["nineteen", "short one", long]) assert.ok(!error.message.includes(value));
      return refusal("invalid", /csi\.storage\.k8s\.io\/node-stage-secret-name/)(error);
    });
  }
});
