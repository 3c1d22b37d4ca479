import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { headOf, type Metadata, ownMetadata, saltOf } from "../../tests/fakes/luks_header.ts";
import { throwsWith } from "../../tests/fakes/volume_errors.ts";
import { copyBytes, formatHeader, parseHeader } from "./luks_header.ts";

const two = () => ownMetadata({ "0": saltOf("first"), "1": saltOf("second") });

/** Recomputes the checksums: whoever writes to the device can, too. */
function withChecksums(head: Uint8Array): Uint8Array {
  for (const start of [0, copyBytes]) {
    const copy = head.subarray(start, start + copyBytes);
    copy.fill(0, 448, 512);
    copy.set(createHash("sha256").update(copy).digest(), 448);
  }
  return head;
}

/** Writes to the binary part of both copies. */
function patched(offset: number, bytes: readonly number[], head = headOf(ownMetadata())): Uint8Array {
  for (const start of [0, copyBytes]) head.set(bytes, start + offset);
  return withChecksums(head);
}

/** Puts a text in place of the metadata. */
function withJson(json: string): Uint8Array {
  const bytes = new Uint8Array(copyBytes - 4096);
  bytes.set(new TextEncoder().encode(json));
  return patched(4096, [...bytes]);
}

function refuses(head: Uint8Array, field: string): void {
  throwsWith(() => parseHeader(head, "/dev/x"), "precondition", new RegExp(`device=/dev/x field=${field} `));
}

Deno.test("parseHeader() reads what this driver makes, and formatHeader() writes the same bytes", () => {
  for (const metadata of [ownMetadata(), two(), sectorsOf4096()]) {
    const head = headOf(metadata, { label: "any label, \xe4" });
    const header = parseHeader(head, "/dev/x");
    assert.deepEqual([header.seqid, header.label, header.lesser], [3n, "any label, \xe4", 0]);
    assert.deepEqual(header.metadata, metadata);
    assert.deepEqual(formatHeader(header), head.slice(0, 2 * copyBytes));
  }
});

function sectorsOf4096(): Metadata {
  const metadata = ownMetadata();
  metadata["segments"]["0"].sector_size = 4096;
  return metadata;
}

const alterations: Readonly<Record<string, readonly ((metadata: Metadata) => void)[]>> = {
  "keyslots": [(all) => all["keyslots"] = {}, (all) => all["keyslots"] = [], (all) => delete all["keyslots"]],
  "keyslots.0.type": [(all) => all["keyslots"][0].type = "reencrypt"],
  "keyslots.0.key_size": [(all) => all["keyslots"][0].key_size = 32],
  "keyslots.0.priority": [(all) => all["keyslots"][0].priority = 2],
  "keyslots.0.af.type": [(all) => all["keyslots"][0].af.type = "none"],
  "keyslots.0.af.stripes": [(all) => all["keyslots"][0].af.stripes = 1],
  "keyslots.0.af.hash": [(all) => all["keyslots"][0].af.hash = "sha1"],
  "keyslots.0.area.type": [(all) => all["keyslots"][0].area.type = "journal"],
  "keyslots.0.area.offset": [
    (all) => all["keyslots"][0].area.offset = "0",
    (all) => all["keyslots"][0].area.offset = "32769",
    (all) => all["keyslots"][0].area.offset = "28672",
    (all) => all["keyslots"][0].area.offset = "16519168",
    (all) => all["keyslots"][0].area.offset = 32_768,
  ],
  "keyslots.0.area.size": [(all) => all["keyslots"][0].area.size = "4096"],
  "keyslots.0.area.encryption": [(all) => all["keyslots"][0].area.encryption = "cipher_null-ecb"],
  "keyslots.0.area.key_size": [(all) => all["keyslots"][0].area.key_size = 16],
  "keyslots.0.kdf.type": [
    (all) => all["keyslots"][0].kdf.type = "argon2i",
    (all) => all["keyslots"][0].kdf = { type: "pbkdf2", hash: "sha256", iterations: 1000, salt: saltOf("") },
  ],
  "keyslots.0.kdf.time": [
    (all) => all["keyslots"][0].kdf.time = 4e9,
    (all) => all["keyslots"][0].kdf.time = 2049,
    (all) => all["keyslots"][0].kdf.time = 0,
    (all) => all["keyslots"][0].kdf.time = -1,
    (all) => all["keyslots"][0].kdf.time = 4.5,
    (all) => all["keyslots"][0].kdf.time = "4",
  ],
  "keyslots.0.kdf.memory": [
    (all) => all["keyslots"][0].kdf.memory = 2 * 1024 * 1024,
    (all) => all["keyslots"][0].kdf.memory = 1024 * 1024 + 1,
    (all) => all["keyslots"][0].kdf.memory = 2 ** 32,
  ],
  "keyslots.0.kdf.cpus": [(all) => all["keyslots"][0].kdf.cpus = 5],
  "keyslots.0.kdf.salt": [(all) => all["keyslots"][0].kdf.salt = "c2hvcnQ="],
  "keyslots.a": [(all) => all["keyslots"].a = all["keyslots"][0]],
  "tokens.0": [(all) => all["tokens"] = { "0": { type: "luks2-keyring", keyslots: ["0"] } }],
  "segments.0.type": [(all) => all["segments"][0].type = "linear"],
  "segments.0.offset": [
    (all) => all["segments"][0].offset = "0",
    (all) => all["segments"][0].offset = "33554432",
    (all) => all["segments"][0].offset = 16_777_216,
  ],
  "segments.0.size": [(all) => all["segments"][0].size = "4096"],
  "segments.0.iv_tweak": [(all) => all["segments"][0].iv_tweak = "1"],
  "segments.0.encryption": [
    (all) => all["segments"][0].encryption = "cipher_null-ecb",
    (all) => all["segments"][0].encryption = "aes-ecb",
    (all) => all["segments"][0].encryption = "aes-xts-plain64\0",
    (all) => all["segments"][0].encryption = ["aes-xts-plain64"],
    (all) => delete all["segments"][0].encryption,
  ],
  "segments.0.sector_size": [(all) => all["segments"][0].sector_size = 1024],
  "segments.0.integrity": [(all) => all["segments"][0].integrity = { type: "none" }],
  "segments.0.flags": [(all) => all["segments"][0].flags = ["in-reencryption"]],
  "segments.1": [(all) => all["segments"][1] = { ...all["segments"][0], offset: "33554432" }],
  "digests.0.type": [(all) => all["digests"][0].type = "none"],
  "digests.0.keyslots": [
    (all) => all["digests"][0].keyslots = [],
    (all) => all["digests"][0].keyslots = ["0", "1"],
  ],
  "digests.0.segments": [(all) => all["digests"][0].segments = []],
  "digests.0.hash": [(all) => all["digests"][0].hash = "md5"],
  "digests.0.iterations": [(all) => all["digests"][0].iterations = 4e9],
  "digests.0.digest": [(all) => all["digests"][0].digest = ""],
  "digests.1": [(all) => all["digests"][1] = all["digests"][0]],
  "config.json_size": [(all) => all["config"].json_size = "4096"],
  "config.keyslots_size": [(all) => all["config"].keyslots_size = "0"],
  "config.flags": [(all) => all["config"].flags = ["allow-discards"]],
  "config.requirements": [(all) => all["config"].requirements = { mandatory: ["online-reencrypt-v2"] }],
  "comment": [(all) => all["comment"] = ""],
};

for (const [field, changes] of Object.entries(alterations)) {
  Deno.test(`parseHeader() refuses a header whose checksums are right, and whose ${field} is altered`, () => {
    for (const change of changes) {
      const metadata = ownMetadata();
      change(metadata);
      refuses(headOf(metadata), field);
    }
  });
}

Deno.test("parseHeader() refuses more than two key slots, and areas of two that overlap", () => {
  refuses(headOf(ownMetadata({ "0": saltOf("a"), "1": saltOf("b"), "2": saltOf("c") })), "keyslots");
  const metadata = two();
  metadata["keyslots"][1].area.offset = "286720";
  refuses(headOf(metadata), "keyslots.area.offset");
});

Deno.test("parseHeader() refuses metadata that is no JSON object, whatever its length", () => {
  for (const json of ["", "{", "[]", "null", "1", '"', "[".repeat(12_000), '{"keyslots":\xff}']) {
    refuses(withJson(json), "(?:metadata|keyslots)");
  }
  const whole = headOf(ownMetadata());
  for (const start of [0, copyBytes]) whole.fill(0x20, start + 4096, start + copyBytes);
  refuses(withChecksums(whole), "metadata");
});

Deno.test("what two programs could read in two ways is not in the copy that is opened", () => {
  const json = JSON.stringify(ownMetadata());
  const twice = json.replace('"iv_tweak"', '"encryption":"cipher_null-ecb","iv_tweak"');
  assert.notEqual(twice, json);
  const header = parseHeader(withJson(` ${twice}\n`), "/dev/x");
  const text = new TextDecoder().decode(formatHeader(header));
  assert.ok(!text.includes("cipher_null"));
  assert.equal(text.split('"encryption":"aes-xts-plain64"').length, 1 + 2 * 2);
});

const binary: Readonly<Record<string, Uint8Array>> = {
  "magic number": patched(0, [0]),
  version: patched(6, [0, 1]),
  size: patched(8, [0, 0, 0, 0, 0, 0, 0x80, 0]),
  algorithm: patched(72, [...new TextEncoder().encode("sha512")]),
  "offset of itself": patched(256, [1]),
  checksum: headOf(ownMetadata()).map((byte, at) => at % copyBytes === 448 ? byte ^ 1 : byte),
  content: headOf(ownMetadata()).map((byte, at) => at % copyBytes === 12_000 ? byte ^ 1 : byte),
};

for (const [field, head] of Object.entries(binary)) {
  Deno.test(`parseHeader() refuses a header whose copies both have a wrong ${field}`, () => {
    refuses(head, "header");
  });
}

Deno.test("parseHeader() refuses what is cut short, zero or another UUID", () => {
  refuses(headOf(ownMetadata()).slice(0, copyBytes - 1), "header");
  refuses(new Uint8Array(0), "header");
  refuses(new Uint8Array(1 << 20), "header");
  refuses(headOf(ownMetadata(), { uuid: "../x" }), "uuid");
});

Deno.test("of two copies the later one counts if it is undamaged, and the other one is to be overwritten first", () => {
  const [older, newer] = [3n, 4n].map((seqid) => headOf(ownMetadata(), { seqid }));
  const joined = (primary: Uint8Array, secondary: Uint8Array) => {
    const head = primary.slice();
    head.set(secondary.slice(copyBytes, 2 * copyBytes), copyBytes);
    return head;
  };
  const damaged = new Uint8Array(1 << 20);
  const cases = [
    [older!, newer!, 4n, 0],
    [newer!, older!, 4n, 1],
    [newer!, newer!, 4n, 0],
    [damaged, older!, 3n, 0],
    [older!, damaged, 3n, 1],
  ] as const;
  for (const [primary, secondary, seqid, lesser] of cases) {
    const header = parseHeader(joined(primary, secondary), "/dev/x");
    assert.deepEqual([header.seqid, header.lesser], [seqid, lesser]);
  }
  // A later copy that is none of this driver's is not passed over.
  const evil = ownMetadata();
  evil["segments"][0].encryption = "cipher_null-ecb";
  refuses(joined(older!, headOf(evil, { seqid: 9n })), "segments.0.encryption");
});

Deno.test("the costs that luksFormat reaches with the highest parameters are allowed", () => {
  for (const [time, memory] of [[423, 32 * 1024], [8192, 32 * 1024], [12, 1024 * 1024], [256, 1024 * 1024]]) {
    const metadata = ownMetadata();
    Object.assign(metadata["keyslots"][0].kdf, { time, memory });
    parseHeader(headOf(metadata), "/dev/x");
  }
});
