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

interface KnownHostsLine {
  /** Undefined for a bare public key. */
  readonly hosts: string | undefined;
  readonly key: HostKey;
}

/**
 * Parses pinned host keys: lines of an OpenSSH public key (`ssh-ed25519 AAAA…`) or of a known_hosts file (plain,
 * `[host]:port` or hashed names). Empty lines and comments are skipped.
 *
 * Of several known_hosts lines only those that name the router count. A single line counts under any name: the router
 * may have another name there, and only the key is compared.
 *
 * @throws {VolumeError} invalid when a line cannot be parsed, or none is left
 */
export function parseHostKeys(text: string, host: string, port: number): HostKey[] {
  const lines = text.split(/\r?\n/).map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map(parseLine);
  const only = lines.length === 1;
  const keys = lines
    .filter((line) => only || line.hosts === undefined || namesHost(line.hosts, host, port))
    .map((line) => line.key);
  if (keys.length > 0) return keys;
  throw new VolumeError(
    "invalid",
    `Cannot pin the router's host key because no line names it: host=${host} port=${port}; ` +
      "use the output of ssh-keyscan on a trusted connection",
  );
}

function parseLine(line: string): KnownHostsLine {
  const words = line.split(/\s+/);
  if (words[0]!.startsWith("@")) throw notReadable(`the marker ${words[0]} is not supported`);
  const bare = keyTypes.test(words[0]!);
  const [type, encoded] = bare ? words : words.slice(1);
  if (type === undefined || !keyTypes.test(type)) {
    throw notReadable("its type of key is none of SSH's, such as ssh-ed25519");
  }
  const blob = new Uint8Array(Buffer.from(encoded ?? "", "base64"));
  if (keyTypeOf(blob) !== type) throw notReadable(`its data is no ${type} key`);
  return { hosts: bare ? undefined : words[0], key: { type, blob } };
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

/** A key's fingerprint as OpenSSH prints it: `SHA256:…`. */
export function fingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
}

/** The message for a host key that is not pinned, with both fingerprints. */
export function describeMismatch(pins: readonly HostKey[], presented: Uint8Array): string {
  const expected = pins.map((pin) => `${fingerprint(pin.blob)} (${pin.type})`).join(" or ");
  return `its host key is not the pinned one: presented=${fingerprint(presented)} (${
    keyTypeOf(presented)
  }) ` +
    `pinned=${expected}; if you changed the key, pin the new one; otherwise a machine in between may intercept the connection`;
}

function namesHost(hosts: string, host: string, port: number): boolean {
  const name = port === 22 ? host : `[${host}]:${port}`;
  return hosts.split(",").some((entry) => {
    if (!entry.startsWith("|1|")) {
      return entry.toLowerCase() === name.toLowerCase() || entry === `[${host}]:${port}`;
    }
    const [, , salt, hash] = entry.split("|");
    const own = createHmac("sha1", Buffer.from(salt ?? "", "base64")).update(name.toLowerCase()).digest(
      "base64",
    );
    return own === hash;
  });
}

function notReadable(reason: string): VolumeError {
  return new VolumeError(
    "invalid",
    `Cannot read the pinned host key because ${reason}; expected an OpenSSH public key ("ssh-ed25519 AAAA…") or a ` +
      "known_hosts line",
  );
}
