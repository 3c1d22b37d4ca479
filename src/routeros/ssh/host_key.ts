import { Buffer } from "node:buffer";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { VolumeError } from "../../volume/errors.ts";

/** A host key that the router must present. */
export interface HostKey {
  /** Such as `ssh-ed25519`, `ssh-rsa`. */
  readonly type: string;
  /** The public key in wire form (RFC 4253, section 6.6). */
  readonly blob: Uint8Array;
}

const keyTypes = /^(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))$/;

/** Other types of OpenSSH's, which no router presents: DSA, keys in hardware, and certificates. */
const otherTypes =
  /^(?:ssh-dss|(?:sk-)?(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp[0-9]+)(?:-cert-v01)?@openssh\.com)$/;

interface KnownHostsLine {
  /** Such as `@revoked`; undefined for a key to trust. */
  readonly marker: string | undefined;
  /** Undefined for one of another type. */
  readonly key: HostKey | undefined;
}

/**
 * Parses pinned host keys: lines of an OpenSSH public key (`ssh-ed25519 AAAA…`) or of a known_hosts file (plain,
 * `[host]:port` or hashed names, or patterns). Empty lines, comments, authorities of certificates and types of keys that
 * no router presents are skipped, and so is what the lines of other hosts hold. A revoked key does not count.
 *
 * Of several known_hosts lines only those that name the router count. A single line counts under any name: the router
 * may have another name there, and only the key is compared.
 *
 * @throws {VolumeError} invalid when a line cannot be parsed, or none is left
 */
export function parseHostKeys(text: string, host: string, port: number): HostKey[] {
  const lines = text.split(/\r?\n/).flatMap((whole, index) => {
    const line = whole.trim();
    return line === "" || line.startsWith("#") ? [] : [{ line, number: index + 1 }];
  });
  const only = lines.length === 1;
  const counts = (hosts: string) => only || namesHost(hosts, host, port);
  const named = lines.flatMap(({ line, number }) => parseLine(line, number, counts) ?? []);
  const keysOf = (marker?: string) =>
    named.flatMap((line) => line.marker === marker && line.key !== undefined ? [line.key] : []);
  const revoked = keysOf("@revoked");
  const keys = keysOf().filter(({ blob }) => !isPinned(revoked, blob));
  if (keys.length > 0) return keys;
  const reason = named.length === 0 ? "no line names it" : "each line for it is of another type, or revoked";
  throw new VolumeError(
    "invalid",
    `Cannot pin the router's host key because ${reason}: host=${host} port=${port}; ` +
      "use the output of ssh-keyscan on a trusted connection",
  );
}

/** @returns undefined for a line whose names do not count, whatever its key is */
function parseLine(
  line: string,
  number: number,
  counts: (hosts: string) => boolean,
): KnownHostsLine | undefined {
  const words = line.split(/\s+/);
  const marker = words[0]!.startsWith("@") ? words.shift() : undefined;
  const isType = (word = "") => keyTypes.test(word) || otherTypes.test(word);
  const hosts = marker === undefined && isType(words[0]) ? undefined : words.shift();
  const [type, encoded] = words;
  // A line of two words may be the router's own without its name, such as a bare key whose type is misspelt.
  if (hosts !== undefined && encoded !== undefined && !counts(hosts)) return undefined;
  if (type === undefined || !isType(type)) {
    throw notReadable(number, "its type of key is none of SSH's, such as ssh-ed25519");
  }
  if (otherTypes.test(type)) return { marker, key: undefined };
  const blob = new Uint8Array(Buffer.from(encoded ?? "", "base64"));
  if (keyTypeOf(blob) !== type) throw notReadable(number, `its data is no ${type} key`);
  return { marker, key: { type, blob } };
}

/** The type that is encoded in a key in wire form; "" for anything else. */
export function keyTypeOf(blob: Uint8Array): string {
  if (blob.length < 8) return "";
  const length = new DataView(blob.buffer, blob.byteOffset).getUint32(0);
  if (length > 64 || blob.length <= 4 + length) return "";
  return new TextDecoder().decode(blob.subarray(4, 4 + length));
}

/** Whether the presented key is one of the pinned ones, compared in constant time. */
export function isPinned(pins: readonly HostKey[], presented: Uint8Array): boolean {
  let pinned = false;
  for (const { blob } of pins) {
    if (blob.length === presented.length && timingSafeEqual(blob, presented)) pinned = true;
  }
  return pinned;
}

/** The fingerprints of the pinned keys of other types than the presented one. */
export function pinsOfOtherTypes(pins: readonly HostKey[] | "insecure", presented: Uint8Array): string[] {
  const others = pins === "insecure" ? [] : pins.filter(({ type }) => type !== keyTypeOf(presented));
  return others.map(({ blob }) => fingerprint(blob));
}

/** A key's fingerprint as OpenSSH prints it: `SHA256:…`. */
export function fingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
}

/** The message for a host key that is not pinned, with both fingerprints. */
export function describeMismatch(pins: readonly HostKey[], presented: Uint8Array): string {
  const expected = pins.map((pin) => `${fingerprint(pin.blob)} (${pin.type})`).join(" or ");
  return "its host key is not the pinned one: " +
    `presented=${fingerprint(presented)} (${keyTypeOf(presented)}) pinned=${expected}; ` +
    "if you changed the key, pin the new one; otherwise a machine in between may intercept the connection";
}

/** Whether the names of a known_hosts line are the router's, by the rules of sshd(8). */
function namesHost(hosts: string, host: string, port: number): boolean {
  const names = port === 22 ? [host, `[${host}]:22`] : [`[${host}]:${port}`];
  const isNamed = (entry: string) => names.some((name) => matches(entry, name.toLowerCase()));
  const entries = hosts.split(",");
  return entries.some(isNamed) && !entries.some((entry) => entry.startsWith("!") && isNamed(entry.slice(1)));
}

function matches(entry: string, name: string): boolean {
  if (entry.startsWith("|1|")) {
    const [, , salt, hash] = entry.split("|");
    return createHmac("sha1", Buffer.from(salt ?? "", "base64")).update(name).digest("base64") === hash;
  }
  const pattern = entry.toLowerCase().replace(/[^a-z0-9*?]/g, "\\$&").replaceAll("*", ".*").replaceAll(
    "?",
    ".",
  );
  return new RegExp(`^${pattern}$`).test(name);
}

function notReadable(number: number, reason: string): VolumeError {
  return new VolumeError(
    "invalid",
    `Cannot read the pinned host key because ${reason}: line=${number}; expected an OpenSSH public key ` +
      `("ssh-ed25519 AAAA…") or a known_hosts line`,
  );
}
