import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { refusal } from "../../../../tests/fakes/refusal.ts";
import {
  formatDirectoryHandle,
  formatNfsAddresses,
  isDirectoryPath,
  isInside,
  maxDirectoryHandleBytes,
  maxDirectoryPathBytes,
  parseDirectoryHandle,
  parseNfsAddresses,
  serverHash,
} from "./handle.ts";

const name = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const path = `/share/k8s/${name}.0123abcd`;

function addresses(text: string) {
  return parseNfsAddresses("addresses", text);
}

Deno.test("parseNfsAddresses() reads host names, IPv4 and IPv6, with and without a port", () => {
  assert.deepEqual(addresses("10.0.0.1"), [{ host: "10.0.0.1", port: 2049 }]);
  assert.deepEqual(addresses("NAS.example.net:2050, fd00::1,[fd00::2]:2049,[FD00::3]"), [
    { host: "nas.example.net", port: 2050 },
    { host: "fd00::1", port: 2049 },
    { host: "fd00::2", port: 2049 },
    { host: "fd00::3", port: 2049 },
  ]);
});

Deno.test("parseNfsAddresses() refuses what is no address, is there twice, or is too much", () => {
  const bad = [
    "",
    ",",
    "a,",
    "a b",
    "-a",
    "a:",
    "a:0",
    "a:65536",
    "a:1:2",
    "[a]:1",
    "[fd00::1",
    "a/b",
    "a@b",
    "10.0.0.1,10.0.0.1:2049",
    "10.0.0.300",
    "10.0.0:2049",
    "a;b",
    Array.from({ length: 9 }, (_, at) => `10.0.0.${at}`).join(),
  ];
  for (const text of bad) {
    assert.throws(() => addresses(text), refusal("invalid", /addresses=/), JSON.stringify(text));
  }
});

Deno.test("formatNfsAddresses() writes what parseNfsAddresses() reads", () => {
  for (const text of ["10.0.0.1", "nas:2050,10.0.0.1", "[fd00::1],[fd00::2]:111"]) {
    assert.equal(formatNfsAddresses(addresses(text)), text);
  }
});

Deno.test("serverHash() is the SHA-256 of the sorted addresses, whatever their order and default port", () => {
  const expected = createHash("sha256").update("10.0.0.1,10.0.0.2:2050").digest("hex").slice(0, 8);
  for (const text of ["10.0.0.1,10.0.0.2:2050", "10.0.0.2:2050,10.0.0.1:2049"]) {
    assert.equal(serverHash(addresses(text), ""), expected);
  }
  assert.notEqual(serverHash(addresses("10.0.0.1"), ""), serverHash(addresses("10.0.0.1:111"), ""));
  const disks = ["", "uuid-1", "uuid-2"].map((uuid) => serverHash(addresses("10.0.0.1"), uuid));
  assert.equal(new Set(disks).size, 3);
});

Deno.test("a directory's handle is formatted and parsed both ways", () => {
  const handle = formatDirectoryHandle(addresses("10.0.0.1"), "", { path, name });
  assert.equal(handle, `${serverHash(addresses("10.0.0.1"), "")}@${path}@${name}`);
  assert.deepEqual(parseDirectoryHandle(handle), {
    hash: serverHash(addresses("10.0.0.1"), ""),
    path,
    name,
  });
});

Deno.test("formatDirectoryHandle() takes the longest path, and refuses one byte more", () => {
  const longest = "/".padEnd(maxDirectoryPathBytes, "p");
  const handle = formatDirectoryHandle(addresses("nas"), "", { path: longest, name: "n".repeat(48) });
  assert.equal(handle.length, maxDirectoryHandleBytes);
  assert.equal(parseDirectoryHandle(handle)?.path, longest);
  assert.throws(
    () => formatDirectoryHandle(addresses("nas"), "", { path: `${longest}p`, name }),
    refusal("invalid", /too long/),
  );
  assert.throws(
    () => formatDirectoryHandle(addresses("nas"), "", { path: longest, name: "n".repeat(49) }),
    refusal("invalid"),
  );
});

Deno.test("parseDirectoryHandle() takes no other text for a handle of this driver", () => {
  const sound = `0123abcd@${path}@${name}`;
  assert.ok(parseDirectoryHandle(sound));
  const other = [
    "",
    "media",
    "pvc-0f8fad5bd9cb469fa16570867728",
    `0123abc@${path}@${name}`,
    `0123ABCD@${path}@${name}`,
    `0123abcd@share@${name}`,
    `0123abcd@/share/../x@${name}`,
    `0123abcd@/share//x@${name}`,
    `0123abcd@/share/@${name}`,
    `0123abcd@${path}@`,
    `0123abcd@${path}@a/b`,
    `0123abcd@${path}@..`,
    `0123abcd@${path}@${name}@`,
    `0123abcd@${path}\n@${name}`,
    `0123abcd@/${"ü".repeat(35)}@${name}`,
  ];
  for (const text of other) assert.equal(parseDirectoryHandle(text), undefined, text);
});

Deno.test("isDirectoryPath() accepts absolute paths that mean what they say", () => {
  for (const good of ["/", "/a", "/Media Files/ü", "/a/.b", "/a/b..c"]) {
    assert.ok(isDirectoryPath(good), good);
  }
  for (
    const bad of [
      "",
      "a",
      "//",
      "/a/",
      "/a//b",
      "/.",
      "/a/..",
      "/a/../b",
      "/a\nb",
      "/a\0",
      `/${"a".repeat(1024)}`,
    ]
  ) {
    assert.ok(!isDirectoryPath(bad), JSON.stringify(bad));
  }
});

Deno.test("isInside() goes by whole segments", () => {
  assert.ok(isInside("/share", "/share"));
  assert.ok(isInside("/share/a", "/share"));
  assert.ok(isInside("/share/a", "/"));
  assert.ok(!isInside("/shared", "/share"));
  assert.ok(!isInside("/", "/share"));
});
