import { Buffer } from "node:buffer";
import ssh2 from "ssh2";
import type { ParsedKey } from "ssh2";
import { VolumeError } from "../../volume/errors.ts";

/** `-----BEGIN ` in base64, once and twice. */
const encoded = /^(?:LS0tLS1CRUdJTi|TFMwdExTMUNSVWRKVGl)[A-Za-z0-9+/]*=*$/;

/** A block of PEM; what is around it, such as quotes, does not count. */
const pem = /-----BEGIN ([A-Z0-9 ]+)-----([\s\S]*?)-----END \1-----/;

/**
 * The text of a key file with the line breaks of its form. Secrets and variables change them: on one line, as the two
 * characters `\n`, indented, or the whole file in base64 once more.
 */
export function restoreKeyText(text: string): string {
  const joined = text.replace(/\s+/g, "");
  if (encoded.test(joined)) return restoreKeyText(Buffer.from(joined, "base64").toString("latin1"));
  const [, label, content = ""] = pem.exec(text.replace(/(?:\\r)?\\n/g, "\n")) ?? [];
  // With a header, such as `Proc-Type: 4,ENCRYPTED`, the lines matter.
  if (label === undefined || content.includes(":")) return text;
  const lines = content.replace(/\s+/g, "").match(/.{1,70}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

/**
 * Checks that a text is a private key that can be used.
 *
 * @returns the key, as the SSH library reads it
 * @throws {VolumeError} invalid when it is none. The message names the form and never the key.
 */
export function readPrivateKey(text: string): string {
  const key = restoreKeyText(text);
  const parsed = ssh2.utils.parseKey(key);
  if (!(parsed instanceof Error) && isPrivate(parsed)) return key;
  const failure = parsed instanceof Error ? parsed.message : "BEGIN PUBLIC KEY";
  const reason = forms.find(([known]) => known.test(key) || known.test(failure))?.[1] ?? failure;
  throw new VolumeError(
    "invalid",
    `Cannot read the private key for the router because ${reason}; expected OpenSSH or PEM form, without a passphrase`,
  );
}

/**
 * Judges the text of a key file, for a person who looks for its fault: a private key that a router accepts, a public
 * key, or an unusable one, such as one with a passphrase or of the type ECDSA.
 */
export function judgeKeyFile(text: string): "usable" | "public" | "unusable" {
  const key = restoreKeyText(text);
  const parsed = ssh2.utils.parseKey(key);
  // A key with a passphrase is an error. The library does not know every form of public keys.
  if (parsed instanceof Error) return /BEGIN [A-Z0-9 ]*PUBLIC KEY/.test(key) ? "public" : "unusable";
  if (!isPrivate(parsed)) return "public";
  const isAccepted = [parsed].flat().some(({ type }) => type === "ssh-rsa" || type === "ssh-ed25519");
  return isAccepted ? "usable" : "unusable";
}

/** Forms that cannot be used, by the text or the library's message, which does not tell most of them apart. */
const forms: readonly (readonly [RegExp, string])[] = [
  [/^\s*$/, "its file is empty"],
  [/BEGIN [A-Z0-9 ]*PUBLIC KEY/, "it is the public key, whose file ends with .pub"],
  [/ENCRYPTED|passphrase/, "it has a passphrase, which ssh-keygen -p -f FILE removes"],
  [/BEGIN PRIVATE KEY/, "it has the form PKCS#8, which ssh-keygen -p -f FILE rewrites for an RSA key"],
  [/BEGIN CERTIFICATE/, "it is a certificate"],
  [/BEGIN (?![\s\S]*-----END )/, "its last line is missing"],
  [/^(?![\s\S]*BEGIN )/, "it does not begin with -----BEGIN, as a private key does"],
];

function isPrivate(parsed: ParsedKey | ParsedKey[]): boolean {
  return [parsed].flat().some((key) => key.isPrivateKey());
}
