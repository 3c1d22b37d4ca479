import { createHash } from "node:crypto";
import { formatHeader, type FormattedHeader } from "../../src/device_mapper/luks_header.ts";

/** How much of a device holds a header and the areas of its keys. */
const headBytes = 1024 * 1024;

/** Metadata as JSON, which a test may change in any way. */
// deno-lint-ignore no-explicit-any -- any field of it, also those that nobody makes
export type Metadata = Record<string, any>;

/** The metadata that cryptsetup makes with this driver's arguments. */
export function ownMetadata(
  salts: Readonly<Record<string, string>> = { "0": saltOf("passphrase") },
): Metadata {
  const keyslots = Object.entries(salts).map(([name, salt]) => [name, {
    type: "luks2",
    key_size: 64,
    af: { type: "luks1", stripes: 4000, hash: "sha256" },
    area: {
      type: "raw",
      offset: String(32_768 + Number(name) * 258_048),
      size: "258048",
      encryption: "aes-xts-plain64",
      key_size: 64,
    },
    kdf: { type: "argon2id", time: 4, memory: 131_072, cpus: 4, salt },
  }]);
  return {
    keyslots: Object.fromEntries(keyslots),
    tokens: {},
    segments: {
      "0": {
        type: "crypt",
        offset: "16777216",
        size: "dynamic",
        iv_tweak: "0",
        encryption: "aes-xts-plain64",
        sector_size: 512,
      },
    },
    digests: {
      "0": {
        type: "pbkdf2",
        keyslots: Object.keys(salts),
        segments: ["0"],
        hash: "sha256",
        iterations: 200_000,
        salt: saltOf("digest"),
        digest: saltOf("key"),
      },
    },
    config: { json_size: "12288", keyslots_size: "16744448" },
  };
}

/** A text of the form of a salt, which is another one for each text. */
export function saltOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

/** The beginning of a device: both copies of a header, with checksums that are right. */
export function headOf(
  metadata: object,
  change: Partial<Omit<FormattedHeader, "metadata">> = {},
): Uint8Array {
  const head = new Uint8Array(headBytes);
  head.set(formatHeader({
    seqid: 3n,
    label: "rds-csi",
    uuid: "01234567-89ab-cdef-0123-456789abcdef",
    salts: [new Uint8Array(64).fill(1), new Uint8Array(64).fill(2)],
    ...change,
    metadata: metadata as FormattedHeader["metadata"],
  }));
  return head;
}
