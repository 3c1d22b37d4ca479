import { generateKeyPairSync } from "node:crypto";
import { type ParsedKey, ssh2 } from "./library.ts";

/** The key by which clients know the router. */
export interface HostKey {
  readonly privatePem: string;
  /** As OpenSSH writes it into known_hosts, without the host. */
  readonly publicLine: string;
}

const modulusLength = 2048;

/** Makes an RSA-2048 key, which is what a router has by default. */
export function generateHostKey(): HostKey {
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength,
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
    publicKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  return readHostKey(privateKey);
}

/**
 * Reads a private key in PEM or OpenSSH format.
 *
 * @throws {RangeError} when it is none.
 */
export function readHostKey(privatePem: string): HostKey {
  const key = parseKey(privatePem);
  if (key === undefined || !key.isPrivateKey()) throw new RangeError("The host key is no private key.");
  return { privatePem, publicLine: `${key.type} ${key.getPublicSSH().toString("base64")}` };
}

/** Reads a key of any kind; undefined when it is none. */
export function parseKey(text: string): ParsedKey | undefined {
  const parsed: unknown = ssh2.utils.parseKey(text);
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  return first === undefined || first instanceof Error ? undefined : first as ParsedKey;
}
