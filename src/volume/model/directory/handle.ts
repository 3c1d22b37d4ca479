import { isIPv6 } from "node:net";
import { isHostAddress } from "../address.ts";
import { digest } from "../digest.ts";
import { VolumeError } from "../../errors.ts";

/** The port of an NFS server whose address names none. */
export const defaultNfsPort = 2049;
/** Longest path of a directory in a handle, in bytes. */
export const maxDirectoryPathBytes = 70;
/** Longest handle of a directory, in bytes: the CSI specification's limit for a volume id. */
export const maxDirectoryHandleBytes = 128;
/** The maximum number of addresses of one NFS server. */
export const maxNfsAddresses = 8;

const nameForm = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;
const handleForm = /^([0-9a-f]{8})@(\/[^@]+)@([^@]+)$/;

/** The address of an NFS server. */
export interface NfsAddress {
  /** A host name or an IP address, in lower case; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** What the handle of a directory that this driver has made says. */
export interface DirectoryHandle {
  /** Eight hex digits that represent the server's addresses and the disk, see {@linkcode serverHash}. */
  readonly hash: string;
  /** The directory, from the root of the server. */
  readonly path: string;
  /** The name of the PersistentVolume, see `directoryNameFor()`. */
  readonly name: string;
}

/**
 * Parses the addresses of one NFS server: `host`, `host:port` or `[IPv6]:port`, separated by commas.
 *
 * @throws {VolumeError} invalid when one is no address, when one appears twice, or when there are none or too many
 */
export function parseNfsAddresses(key: string, text: string): readonly NfsAddress[] {
  const addresses = text.split(",").map((one) => parseAddress(one.trim()));
  const sound = addresses.filter((one) => one !== undefined);
  const isSound = sound.length === addresses.length && sound.length <= maxNfsAddresses &&
    new Set(sound.map(formatAddress)).size === sound.length;
  if (isSound) return sound;
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: ${key}=${JSON.stringify(text.slice(0, 128))}; use host[:port], ` +
      `or up to ${maxNfsAddresses} different ones separated by commas`,
  );
}

/** The text from which {@linkcode parseNfsAddresses} reads the same addresses; the default port is left out. */
export function formatNfsAddresses(addresses: readonly NfsAddress[]): string {
  return addresses.map(formatAddress).join(",");
}

/**
 * Eight hex digits that represent where a directory is: the server's addresses in any order, with or without the default port, and
 * the file system that is its share.
 *
 * @param filesystemUuid "" where the router shows none
 */
export function serverHash(addresses: readonly NfsAddress[], filesystemUuid: string): string {
  const server = addresses.map(formatAddress).toSorted().join(",");
  return digest(filesystemUuid === "" ? server : `${server} ${filesystemUuid}`, 8);
}

/**
 * The handle of a directory that this driver makes: `<hash>@<path>@<pv-name>`.
 *
 * @param filesystemUuid as for {@linkcode serverHash}
 * @throws {VolumeError} invalid when path or name have another form, or are too long
 */
export function formatDirectoryHandle(
  addresses: readonly NfsAddress[],
  filesystemUuid: string,
  { path, name }: Omit<DirectoryHandle, "hash">,
): string {
  if (byteLength(path) > maxDirectoryPathBytes) {
    throw new VolumeError(
      "invalid",
      `Cannot use the path because it is too long: path=${path} bytes=${byteLength(path)} ` +
        `most=${maxDirectoryPathBytes}; use a shorter --base-path or a shorter path of the StorageClass`,
    );
  }
  const handle = `${serverHash(addresses, filesystemUuid)}@${path}@${name}`;
  if (parseDirectoryHandle(handle) !== undefined) return handle;
  throw new VolumeError(
    "invalid",
    "Cannot use the name of the directory: " +
      `path=${JSON.stringify(path)} name=${JSON.stringify(name.slice(0, 128))}`,
  );
}

/**
 * Parses the handle of a directory that this driver has made. Undefined for any other text: static volumes may have any
 * handle, and their volume context says where they are.
 */
export function parseDirectoryHandle(handle: string): DirectoryHandle | undefined {
  if (byteLength(handle) > maxDirectoryHandleBytes) return undefined;
  const [, hash, path, name] = handleForm.exec(handle) ?? [];
  if (hash === undefined || path === undefined || name === undefined) return undefined;
  const isSound = nameForm.test(name) && isDirectoryPath(path) && byteLength(path) <= maxDirectoryPathBytes;
  return isSound ? { hash, path, name } : undefined;
}

/**
 * Whether the text is an absolute path that means what it says: no `.` or `..`, no empty segment, no control
 * characters. `/` alone is one too.
 */
export function isDirectoryPath(path: string): boolean {
  // deno-lint-ignore no-control-regex
  if (!path.startsWith("/") || byteLength(path) > 1024 || /[\u0000-\u001f\u007f-\u009f]/.test(path)) {
    return false;
  }
  if (path === "/") return true;
  return path.slice(1).split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");
}

/** Whether a path is a folder itself, or lies below it; `/` holds all. */
export function isInside(path: string, folder: string): boolean {
  return folder === "/" || path === folder || path.startsWith(`${folder}/`);
}

function parseAddress(text: string): NfsAddress | undefined {
  if (isIPv6(text)) return { host: text.toLowerCase(), port: defaultNfsPort };
  const [, bracketed, plain, port = String(defaultNfsPort)] =
    /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([1-9][0-9]{0,4}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const isSound = bracketed === undefined ? isHostAddress(plain ?? "") : isIPv6(bracketed);
  if (host === undefined || !isSound) return undefined;
  return Number(port) > 65_535 ? undefined : { host: host.toLowerCase(), port: Number(port) };
}

function formatAddress({ host, port }: NfsAddress): string {
  const named = host.includes(":") ? `[${host}]` : host;
  return port === defaultNfsPort ? named : `${named}:${port}`;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
