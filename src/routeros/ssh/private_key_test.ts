import assert from "node:assert/strict";
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { makeSshKeys } from "../../../tests/fakes/ssh_keys.ts";
import { throwsWith } from "../../../tests/fakes/volume_errors.ts";
import { judgeKeyFile, readPrivateKey } from "./private_key.ts";

const key = makeSshKeys().private.trim() + "\n";
const rsa = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs1", format: "pem" },
}).privateKey;
const pkcs8 = createPrivateKey(rsa).export({ type: "pkcs8", format: "pem" }) as string;

for (
  const [how, change] of [
    ["as it is", (text) => text],
    ["with the line ends of Windows", (text) => text.replaceAll("\n", "\r\n")],
    ["on one line", (text) => text.replaceAll("\n", " ")],
    ["on one line without spaces", (text) => text.replaceAll("\n", "")],
    ["with two characters for each line break", (text) => text.replaceAll("\n", "\\n")],
    ["with four characters for each line break", (text) => text.replaceAll("\n", "\\r\\n")],
    ["indented", (text) => text.replace(/^/gm, "    ")],
    ["in quotes", (text) => `"${text}"`],
    ["in base64", (text) => btoa(text)],
    ["in base64 twice, on several lines", (text) => btoa(btoa(text)).replace(/.{76}/g, "$&\n")],
  ] as (readonly [string, (text: string) => string])[]
) {
  Deno.test(`readPrivateKey() reads a key ${how}`, () => {
    for (const text of [key, rsa]) {
      assert.doesNotThrow(() => readPrivateKey(change(text)));
      assert.equal(judgeKeyFile(change(text)), "usable");
    }
  });
}

for (
  const [what, text, reason, judged] of [
    ["an empty file", "", /its file is empty/, "unusable"],
    ["an empty line", " \n", /its file is empty/, "unusable"],
    ["a public key", makeSshKeys().public, /it is the public key/, "public"],
    [
      "a public key in PEM",
      "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
      /public/,
      "public",
    ],
    ["a key with a passphrase", makeSshKeys("x").private, /it has a passphrase/, "unusable"],
    [
      "a key in PEM with a passphrase",
      rsa.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n"),
      /it has a passphrase/,
      "unusable",
    ],
    ["PKCS#8", pkcs8, /PKCS#8, which ssh-keygen/, "unusable"],
    ["PKCS#8 on one line", pkcs8.replaceAll("\n", " "), /PKCS#8, which ssh-keygen/, "unusable"],
    ["a key without its end", key.slice(0, 200), /its last line is missing/, "unusable"],
    ["another text", "garbage", /does not begin with -----BEGIN/, "unusable"],
  ] as const
) {
  Deno.test(`readPrivateKey() refuses ${what} in words of its own, without showing it`, () => {
    throwsWith(() => readPrivateKey(text), "invalid", reason);
    if (text.length > 2) {
      assert.throws(() => readPrivateKey(text), (error: Error) => !error.message.includes(text));
    }
    assert.equal(judgeKeyFile(text), judged);
  });
}
