import { generateKeyPairSync } from "node:crypto";
import { type ParsedKey, ssh2 } from "./library.ts";

/** The key by which clients recognise the router. */
export interface HostKey {
  readonly privatePem: string;
  /** In the form of known_hosts, without the host. */
  readonly publicLine: string;
}

const modulusLength = 2048;

/** Makes an RSA-2048 key, the default of a router. */
export function generateHostKey(): HostKey {
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength,
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
    publicKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  return readHostKey(privateKey);
}

/**
 * Parses a private key in PEM or OpenSSH format.
 *
 * @throws {RangeError} when it is invalid.
 */
export function readHostKey(privatePem: string): HostKey {
  const key = parseKey(privatePem);
  if (key === undefined || !key.isPrivateKey()) throw new RangeError("The host key is no private key.");
  return { privatePem, publicLine: `${key.type} ${key.getPublicSSH().toString("base64")}` };
}

/** Parses a key of any kind; undefined when it is invalid. */
export function parseKey(text: string): ParsedKey | undefined {
  const parsed: unknown = ssh2.utils.parseKey(text);
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  return first === undefined || first instanceof Error ? undefined : first as ParsedKey;
}
