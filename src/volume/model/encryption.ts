import { VolumeError } from "../errors.ts";
import { assertSizeRange, mebibyte, type SizeRange } from "./sizes.ts";

/** The room that the header of an encrypted volume takes at the beginning of its device, in bytes. */
export const headerBytes = 16n * mebibyte;

/** The type of an encryption header, as blkid names it. */
export const headerType = "crypto_LUKS" as const;

/** The label of this driver's headers: a device with another one is left alone. */
export const headerLabel = "rds-csi";

/** The label of a header that was begun: nobody has used a device with it. */
export const unfinishedLabel = "rds-csi-unfinished";

/** The key of the secret that holds the passphrase, and of the one that is to replace it. */
const [passphraseKey, newPassphraseKey] = ["encryptionPassphrase", "encryptionPassphraseNew"];

/** The shortest passphrase, in bytes of UTF-8. */
const minPassphraseBytes = 20;

/** The longest passphrase, in bytes: cryptsetup's limit for a key file. */
const maxPassphraseBytes = 8 * 1024 * 1024;

/** The passphrases of an encrypted volume. Never put one into a message, a log or a state file. */
export interface Passphrases {
  readonly current: string;
  /** Replaces the current one; undefined where the secret has none. */
  readonly next: string | undefined;
}

/**
 * Takes the passphrases out of the secrets of a call, byte for byte.
 *
 * @throws {VolumeError} invalid when there is none, or one is too short or no text
 */
export function parsePassphrases(secrets: Readonly<Record<string, string>>): Passphrases {
  const current = passphrase(secrets, passphraseKey!);
  if (current === undefined) throw unusable(passphraseKey!, "it is missing");
  const next = passphrase(secrets, newPassphraseKey!);
  return { current, next: next === current ? undefined : next };
}

function passphrase(secrets: Readonly<Record<string, string>>, key: string): string | undefined {
  const value = Object.hasOwn(secrets, key) ? secrets[key]! : "";
  if (value === "") return undefined;
  const fault = passphraseFault(value);
  if (fault !== undefined) throw unusable(key, fault);
  return value;
}

/** Why a text can be no passphrase, for people; undefined when it can. */
export function passphraseFault(text: string): string | undefined {
  // Bytes that are no text arrive as replacement characters: many secrets would be the same few guesses.
  if (text.includes("\uFFFD") || !text.isWellFormed()) return "it is not text in UTF-8";
  const bytes = new TextEncoder().encode(text).length;
  if (bytes < minPassphraseBytes) return `it has fewer than ${minPassphraseBytes} bytes`;
  return bytes > maxPassphraseBytes ? "it is too long" : undefined;
}

function unusable(key: string, why: string): VolumeError {
  return new VolumeError(
    "invalid",
    `Cannot use the secret of the encrypted volume because ${why}: key=${key}; its StorageClass names the secret by ` +
      "csi.storage.k8s.io/node-stage-secret-name and -namespace",
  );
}

/**
 * The range of sizes of a disk that leaves a user of the volume the requested one.
 *
 * @throws {VolumeError} see {@linkcode assertSizeRange}
 */
export function withHeader(range: SizeRange, encrypted: boolean): SizeRange {
  if (!encrypted) return range;
  assertSizeRange(range);
  const { requiredBytes, limitBytes } = range;
  return {
    requiredBytes: requiredBytes === 0n ? 0n : requiredBytes + headerBytes,
    limitBytes: limitBytes === 0n ? 0n : limitBytes + headerBytes,
  };
}

/** What a disk of that size leaves to a user of the volume, in bytes. */
export function usableBytes(sizeBytes: bigint, encrypted: boolean): bigint {
  if (!encrypted) return sizeBytes;
  return sizeBytes > headerBytes ? sizeBytes - headerBytes : 0n;
}
