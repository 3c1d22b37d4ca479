import assert from "node:assert/strict";
import { isCryptTable } from "./crypt_table.ts";

const key = "0".repeat(128);
const own = `0 32768 crypt aes-xts-plain64 ${key} 0 259:3 32768`;

Deno.test("isCryptTable() takes the tables that cryptsetup makes of this driver's headers", () => {
  const tables = [
    own,
    `${own}\n`,
    `${own} 1 allow_discards`,
    `${own} 2 allow_discards sector_size:4096`,
    `${own} 2 no_read_workqueue no_write_workqueue`,
    own.replace(key, ":64:logon:cryptsetup:01234567-89ab-cdef-0123-456789abcdef-d0"),
  ];
  for (const table of tables) assert.ok(isCryptTable(table, "259:3"), table);
});

const wrong: Readonly<Record<string, string>> = {
  "no table": "",
  "another target": "0 32768 linear 259:3 32768",
  "a target that loses everything": "0 32768 error",
  "no cipher": "0 32768 crypt cipher_null-ecb - 0 259:3 32768",
  "another cipher": own.replace("aes-xts-plain64", "aes-cbc-essiv:sha256"),
  "a cipher with more to it": own.replace("aes-xts-plain64", "capi:authenc(hmac(sha256),xts(aes))-random"),
  "a shorter key": own.replace(key, key.slice(64)),
  "a longer key": own.replace(key, `${key}00`),
  "a shorter key in the key ring": own.replace(key, ":32:logon:x"),
  "an IV offset": own.replace(" 0 259:3", " 8 259:3"),
  "another device": own.replace("259:3", "259:4"),
  "another offset": own.replace(/32768$/, "0"),
  "another begin": own.replace(/^0/, "8"),
  "two targets": `${own}\n32768 8 linear 259:3 0`,
  "two targets that encrypt": `${own}\n${own}`,
  "integrity": `${own} 1 integrity:28:aead`,
  "other IVs": `${own} 2 sector_size:4096 iv_large_sectors`,
  "fewer options than it says": `${own} 2 allow_discards`,
  "no option where it says one": `${own} 1`,
};

for (const [what, table] of Object.entries(wrong)) {
  Deno.test(`isCryptTable() refuses a table with ${what}`, () => {
    assert.equal(isCryptTable(table, "259:3"), false);
  });
}
