import { libcPaths } from "../../host/libc.ts";
import { formatUuid } from "../bytes.ts";

/** The kernel's information about a subvolume (`struct btrfs_ioctl_get_subvol_info_args`). */
export interface SubvolumeInfo {
  readonly uuid: string;
  /** UUID of the subvolume of which this is a snapshot; undefined when it is none. */
  readonly sourceUuid: string | undefined;
  readonly readOnly: boolean;
}

/** A Btrfs file system, or its kernel, refused an operation. */
export class BtrfsError extends Error {
  override readonly name = "BtrfsError";

  /** @param errno number of the error, as in errno(3) */
  constructor(message: string, readonly errno: number) {
    super(`${message}: errno=${errno}`);
  }
}

const functions = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  statfs: { parameters: ["buffer", "buffer"], result: "i32" },
  // ioctl is variadic; with three arguments of these types that makes no difference on x86_64 and aarch64.
  ioctl: { parameters: ["i32", "u64", "buffer"], result: "i32" },
  ioctlNumber: { name: "ioctl", parameters: ["i32", "u64", "i64"], result: "i32" },
  __errno_location: { parameters: [], result: "pointer" },
  /** Copies errno out: a pointer view would need unscoped permission. */
  memcpy: { parameters: ["buffer", "pointer", "usize"], result: "pointer" },
} as const satisfies Deno.ForeignLibraryInterface;

type Symbols = Deno.DynamicLibrary<typeof functions>["symbols"];

const O_RDWR = 2;
const O_CLOEXEC = 0o2000000;
/** `f_type` of statfs(2). */
const btrfsMagic = 0x9123683en;
/** Inode number of every subvolume's root. */
export const subvolumeInode = 256;

// Numbers of linux/btrfs.h, linux/fs.h and linux/fiemap.h.
const SUBVOL_CREATE = 0x5000940en;
const SNAP_DESTROY = 0x5000940fn;
const SNAP_CREATE_V2 = 0x50009417n;
const SUBVOL_GETFLAGS = 0x80089419n;
const SUBVOL_SETFLAGS = 0x4008941an;
const GET_SUBVOL_INFO = 0x81f8943cn;
const FICLONE = 0x40049409n;
const RDONLY = 2n;

const argumentBytes = 4096;
/** The offset of the name in `struct btrfs_ioctl_vol_args` and its second version. */
const nameOffset = 8;
const nameOffsetV2 = 56;

/** Whether a path lies on Btrfs; false also if the C library may not be called. */
export function isOnBtrfs(path: string): boolean {
  try {
    return withLibrary((c) => {
      const answer = new Uint8Array(256);
      if (c.statfs(cString(path), answer) !== 0) throw failure(c, `Cannot look at ${path}`);
      return new DataView(answer.buffer).getBigInt64(0, true) === btrfsMagic;
    });
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return false;
    throw error;
  }
}

/**
 * Makes an empty subvolume.
 *
 * @throws {BtrfsError} when it cannot
 */
export function makeSubvolume(path: string): void {
  withLibrary((c) => onParent(c, path, SUBVOL_CREATE, nameArguments(path, nameOffset)));
}

/**
 * Makes a snapshot of the subvolume `source`, with everything written to its files so far.
 *
 * @throws {BtrfsError} when it cannot
 */
export function makeSnapshot(source: string, path: string, readOnly: boolean): void {
  withLibrary((c) => {
    withOpen(c, source, 0, (descriptor) => {
      const given = nameArguments(path, nameOffsetV2);
      const view = new DataView(given.buffer);
      view.setBigInt64(0, BigInt(descriptor), true);
      view.setBigUint64(16, readOnly ? RDONLY : 0n, true);
      onParent(c, path, SNAP_CREATE_V2, given);
    });
  });
}

/**
 * Removes a subvolume with all its files; it must not contain a subvolume.
 *
 * @throws {BtrfsError} when it cannot
 */
export function removeSubvolume(path: string): void {
  withLibrary((c) => onParent(c, path, SNAP_DESTROY, nameArguments(path, nameOffset)));
}

/**
 * Makes a subvolume read-only, or writable.
 *
 * @throws {BtrfsError} when it cannot
 */
export function setSubvolumeReadOnly(path: string, readOnly: boolean): void {
  withLibrary((c) => {
    withOpen(c, path, 0, (descriptor) => {
      const flags = new BigUint64Array(1);
      const bytes = new Uint8Array(flags.buffer);
      request(c, descriptor, SUBVOL_GETFLAGS, bytes, `Cannot look at ${path}`);
      flags[0] = readOnly ? flags[0]! | RDONLY : flags[0]! & ~RDONLY;
      request(c, descriptor, SUBVOL_SETFLAGS, bytes, `Cannot change ${path}`);
    });
  });
}

/**
 * Returns the information about the subvolume whose root is `path`.
 *
 * @throws {BtrfsError} when it cannot
 */
export function subvolumeInfo(path: string): SubvolumeInfo {
  return withLibrary((c) =>
    withOpen(c, path, 0, (descriptor) => {
      const answer = new Uint8Array(504);
      request(c, descriptor, GET_SUBVOL_INFO, answer, `Cannot look at ${path}`);
      const source = formatUuid(answer.subarray(312, 328));
      return {
        uuid: formatUuid(answer.subarray(296, 312)),
        sourceUuid: /^[0-]+$/.test(source) ? undefined : source,
        readOnly: (new DataView(answer.buffer).getBigUint64(288, true) & 1n) !== 0n,
      };
    })
  );
}

/**
 * Lets the existing, empty file `to` share the contents of `from`.
 *
 * @throws {BtrfsError} when it cannot
 */
export function shareContents(from: string, to: string): void {
  withLibrary((c) => {
    withOpen(c, from, 0, (source) => {
      withOpen(c, to, O_RDWR, (target) => {
        if (c.ioctlNumber(target, FICLONE, BigInt(source)) === 0) return;
        throw failure(c, `Cannot share ${from} with ${to}`);
      });
    });
  });
}

function withLibrary<Result>(use: (c: Symbols) => Result): Result {
  const library = Deno.dlopen(libcPaths[Deno.build.arch], functions);
  try {
    return use(library.symbols);
  } finally {
    library.close();
  }
}

function withOpen<Result>(
  c: Symbols,
  path: string,
  flags: number,
  use: (descriptor: number) => Result,
): Result {
  const descriptor = c.open(cString(path), flags | O_CLOEXEC);
  if (descriptor < 0) throw failure(c, `Cannot open ${path}`);
  try {
    return use(descriptor);
  } finally {
    c.close(descriptor);
  }
}

/** Subvolumes are made and removed by requests to their parent folder. */
function onParent(c: Symbols, path: string, number: bigint, given: Uint8Array<ArrayBuffer>): void {
  const parent = path.slice(0, path.lastIndexOf("/")) || "/";
  withOpen(
    c,
    parent,
    0,
    (descriptor) => request(c, descriptor, number, given, `Cannot make or remove ${path}`),
  );
}

function request(
  c: Symbols,
  descriptor: number,
  number: bigint,
  given: Uint8Array<ArrayBuffer>,
  complaint: string,
): void {
  // Some kernels answer a request for a subvolume's information with 1 on success.
  if (c.ioctl(descriptor, number, given) < 0) throw failure(c, complaint);
}

function nameArguments(path: string, offset: number): Uint8Array<ArrayBuffer> {
  const given = new Uint8Array(argumentBytes);
  given.set(cString(path.slice(path.lastIndexOf("/") + 1)), offset);
  return given;
}

function failure(c: Symbols, complaint: string): BtrfsError {
  const errno = new Uint8Array(4);
  c.memcpy(errno, c.__errno_location(), 4n);
  return new BtrfsError(complaint, new DataView(errno.buffer).getInt32(0, true));
}

function cString(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text + "\0");
}
