import {
  formatNfsAddresses,
  isDirectoryPath,
  isInside,
  type NfsAddress,
  parseNfsAddresses,
} from "./handle.ts";
import { VolumeError } from "../../errors.ts";

/** Owner and permissions that a new directory gets. */
export interface DirectoryOwner {
  /** Permission bits, 0 to 0o7777; undefined leaves those that the router gave it. */
  readonly mode: number | undefined;
  readonly uid: number | undefined;
  readonly gid: number | undefined;
}

/**
 * Where a directory is, as the volume context says. The node applies the owner when it publishes a directory that is
 * still empty, because the router cannot set one.
 */
export interface DirectoryContext extends DirectoryOwner {
  readonly addresses: readonly NfsAddress[];
  /** The path that the server exports; the volume's path is in it. */
  readonly export: string;
  /** The volume's directory, from the root of the server. */
  readonly path: string;
}

/** The highest user and group id; the one above it means "unchanged" to chown. */
const maxOwnerId = 0xffff_fffe;

/** Makes the volume context of a directory. */
export function formatDirectoryContext(context: DirectoryContext): Record<string, string> {
  const { mode, uid, gid } = context;
  return {
    addresses: formatNfsAddresses(context.addresses),
    export: context.export,
    path: context.path,
    ...mode === undefined ? {} : { directoryMode: mode.toString(8).padStart(4, "0") },
    ...uid === undefined ? {} : { uid: String(uid) },
    ...gid === undefined ? {} : { gid: String(gid) },
  };
}

/**
 * Parses the volume context of a directory, also the `volumeAttributes` of a static volume. Other keys belong to the
 * sidecars and are ignored.
 *
 * @throws {VolumeError} invalid when addresses or path are missing, a value is not allowed, or the path is outside the
 * export
 */
export function parseDirectoryContext(context: Readonly<Record<string, string>>): DirectoryContext {
  const { addresses = "", path = "", export: exported = "/" } = context;
  for (const [key, value] of [["addresses", addresses], ["path", path]] as const) {
    if (value === "") {
      throw new VolumeError(
        "invalid",
        `Cannot use the volume because its volume attributes do not say ${key}; ` +
          "a static volume needs addresses and path in volumeAttributes",
      );
    }
  }
  assertDirectoryPath("export", exported);
  assertDirectoryPath("path", path);
  if (!isInside(path, exported)) {
    throw new VolumeError(
      "invalid",
      `Cannot use the volume because its path is outside its export: path=${path} export=${exported}`,
    );
  }
  return {
    addresses: parseNfsAddresses("addresses", addresses),
    export: exported,
    path,
    ...parseDirectoryOwner(context),
  };
}

/** The path of a directory relative to its export; "" for the export itself, else without a slash in front. */
export function pathInExport(
  { path, export: exported }: Pick<DirectoryContext, "path" | "export">,
): string {
  return path.slice(exported === "/" ? 1 : exported.length + 1);
}

/**
 * Parses `directoryMode` (octal), `uid` and `gid`, of a StorageClass or of a volume context.
 *
 * @throws {VolumeError} invalid when a value is not allowed
 */
export function parseDirectoryOwner(
  { directoryMode, uid, gid }: Readonly<Record<string, string>>,
): DirectoryOwner {
  if (directoryMode !== undefined && !/^[0-7]{3,4}$/.test(directoryMode)) {
    refuse("directoryMode", directoryMode, "three or four octal digits, such as 0770");
  }
  return {
    mode: directoryMode === undefined ? undefined : Number.parseInt(directoryMode, 8),
    uid: ownerId("uid", uid),
    gid: ownerId("gid", gid),
  };
}

/**
 * Checks the form of a path of an NFS server.
 *
 * @throws {VolumeError} invalid when it is not absolute, has `.`, `..` or an empty segment, or a slash at its end
 */
export function assertDirectoryPath(key: string, path: string): void {
  if (!isDirectoryPath(path)) {
    refuse(key, path, "an absolute path without .. and without a slash at its end");
  }
}

function ownerId(key: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const id = /^(?:0|[1-9][0-9]{0,9})$/.test(value) ? Number(value) : NaN;
  if (!(id <= maxOwnerId)) refuse(key, value, `a whole number from 0 to ${maxOwnerId}`);
  return id;
}

function refuse(key: string, value: string, allowed: string): never {
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: ${key}=${JSON.stringify(value.slice(0, 128))}; use ${allowed}`,
  );
}
