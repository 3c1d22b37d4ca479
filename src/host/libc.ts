import { VolumeError } from "../volume/errors.ts";
import { concatenate } from "./bytes.ts";
import type { DevicePart, HeldDevice, KernelFiles, MemoryFile, NodeInfo } from "./kernel_files.ts";

/**
 * The C library's real path by architecture, as the permission to load it has to name it (Debian and its derivatives).
 */
export const libcPaths: Readonly<Record<typeof Deno.build.arch, string>> = {
  x86_64: "/usr/lib/x86_64-linux-gnu/libc.so.6",
  aarch64: "/usr/lib/aarch64-linux-gnu/libc.so.6",
};

/** The used functions of the C library (glibc 2.30 or newer). */
const functions = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  /** The same function on another thread, because the open of a device may wait for it; errno is lost there. */
  openWaiting: { name: "open", parameters: ["buffer", "i32"], result: "i32", nonblocking: true },
  read: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  close: { parameters: ["i32"], result: "i32" },
  /** The last close of a device writes out all cached data, and may wait as long as an open. */
  closeWaiting: { name: "close", parameters: ["i32"], result: "i32", nonblocking: true },
  readlink: { parameters: ["buffer", "buffer", "usize"], result: "isize" },
  getdents64: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  /** Memory is passed as a number: a pointer would need unscoped permission. */
  preadWaiting: {
    name: "pread",
    parameters: ["i32", "u64", "usize", "i64"],
    result: "isize",
    nonblocking: true,
  },
  /** For flushes, which may wait for the device. */
  fsyncWaiting: { name: "fsync", parameters: ["i32"], result: "i32", nonblocking: true },
  memfd_create: { parameters: ["buffer", "u32"], result: "i32" },
  ftruncate: { parameters: ["i32", "i64"], result: "i32" },
  pread: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  pwrite: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  posix_memalign: { parameters: ["buffer", "usize", "usize"], result: "i32" },
  free: { parameters: ["u64"], result: "void" },
  copyOut: { name: "memcpy", parameters: ["buffer", "u64", "usize"], result: "pointer" },
  statx: { parameters: ["i32", "buffer", "i32", "u32", "buffer"], result: "i32" },
  __errno_location: { parameters: [], result: "pointer" },
  /** Copies errno out: a pointer view would need unscoped permission. */
  memcpy: { parameters: ["buffer", "pointer", "usize"], result: "pointer" },
} as const satisfies Deno.ForeignLibraryInterface;

// The same on x86_64 and aarch64 (O_DIRECTORY, which differs, is not used).
const O_EXCL = 0o200;
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
/** Different on the two architectures. */
const O_DIRECT: Readonly<Record<typeof Deno.build.arch, number>> = { x86_64: 0o40000, aarch64: 0o200000 };
/** Every device accepts this as a multiple of its blocks. */
const directAlignment = 4096n;
const MFD_CLOEXEC = 1;
const AT_FDCWD = -100;
const AT_STATX_DONT_SYNC = 0x4000;
const AT_EMPTY_PATH = 0x1000;
const STATX_TYPE = 1;
const ENOENT = 2;
const ESRCH = 3;
const EINTR = 4;
const EAGAIN = 11;
const ENOMEM = 12;
const ENODEV = 19;
const ENOTDIR = 20;
const EINVAL = 22;
const ETIMEDOUT = 110;

/** ENODEV: the attribute's device disappeared during the read; ESRCH: the process did. */
const goneErrors: ReadonlySet<number> = new Set([ENOENT, ESRCH, ENODEV, ENOTDIR]);

/** What the locks (futex) and the memory of the runtime leave in errno; no file that is read here answers so for long. */
const runtimeErrors: ReadonlySet<number> = new Set([EINTR, EAGAIN, ENOMEM, ETIMEDOUT]);
const maxAsked = 10;

/**
 * Whether a failed read says that nothing is there.
 *
 * Device mapper answers EINVAL for the attributes of a map that it is deleting, which nobody has open then (Linux,
 * `dm_get_from_kobject`): else one volume that closes would make the calls of others fail.
 *
 * @param errno the error's number
 */
function isGone(path: string, errno: number): boolean {
  return goneErrors.has(errno) || errno === EINVAL && /^\/sys\/block\/dm-[0-9]+\/dm\//.test(path);
}

/**
 * The answer of a function that reads, or undefined because nothing is there. It is asked again where errno is another
 * call's: the runtime makes its own between the function and the look at errno.
 *
 * @param errno reads the error's number
 * @throws {VolumeError} unavailable, when it fails for another reason
 */
export function unlessGone(
  path: string,
  ask: () => number | bigint,
  errno: () => number,
): number | undefined {
  for (let asked = 1;; asked++) {
    const answer = Number(ask());
    if (answer >= 0) return answer;
    const error = errno();
    if (isGone(path, error)) return undefined;
    if (!runtimeErrors.has(error) || asked === maxAsked) {
      throw new VolumeError("unavailable", `Cannot read ${path}: errno=${error}`);
    }
  }
}

const chunkBytes = 64 * 1024;
/** An attribute of /sys is shorter than this; it is read at once or not at all (Linux, filesystems/sysfs.rst). */
const attributeBytes = 4096;
/** Longer than any file of the kernel that this driver reads. */
const maxFileBytes = 64 * 1024 * 1024;
/** Opens and closes that may wait at once: each holds one of the runtime's 32 threads, of which files take 16. */
const maxWaiting = 8;
/**
 * Reads and flushes that may wait at once, besides those: a device that does not answer them must not keep others from
 * being closed.
 */
const maxReading = 6;

/** A call that may hang on a device, with memory that has to outlive it. */
interface DeviceCall {
  /** No other call with the same key may begin. */
  readonly key: string;
  readonly name: Uint8Array<ArrayBuffer>;
}

/** The C library, loaded at the first use, so that a role that does not need it can give up the permission. */
export class Libc implements KernelFiles {
  #library: Deno.DynamicLibrary<typeof functions> | undefined;
  /** A buffer for reads: a new one for each of a thousand reads of /proc would cost more than the reads. */
  readonly #chunk = new Uint8Array(chunkBytes);
  readonly #view = new DataView(this.#chunk.buffer);
  /** Allocated before it is needed: an allocation may change errno. */
  readonly #errnoCopy = new Uint8Array(4);
  readonly #decoder = new TextDecoder();
  readonly #encoder = new TextEncoder();
  /**
   * Opens and closes of devices under way, and separately reads and flushes. To undo a read, the device has to be
   * opened to check that it may be disconnected, and only a disconnect ends a read whose target is gone.
   */
  readonly #underWay = new Set<DeviceCall>();
  readonly #reading = new Set<DeviceCall>();
  /** The callers that wait until one of them ends. */
  #queue: (() => void)[] = [];

  readText(path: string): string | undefined {
    const descriptor = this.#openToRead(path);
    if (descriptor === undefined) return undefined;
    try {
      const bytes = this.#readAll(descriptor, path);
      return bytes === undefined ? undefined : this.#decoder.decode(bytes).replace(/\n$/, "");
    } finally {
      this.#c.close(descriptor);
    }
  }

  readLink(path: string): string | undefined {
    const buffer = this.#chunk;
    const name = this.#cString(path);
    const length = this.#unlessGone(path, () => this.#c.readlink(name, buffer, BigInt(buffer.length)));
    if (length === undefined) return undefined;
    return this.#decoder.decode(buffer.subarray(0, length));
  }

  list(path: string): readonly string[] | undefined {
    const descriptor = this.#openToRead(path);
    if (descriptor === undefined) return undefined;
    try {
      return this.#readFolder(descriptor, path);
    } finally {
      this.#c.close(descriptor);
    }
  }

  info(path: string): NodeInfo | undefined {
    const name = this.#cString(path);
    const ask = () => this.#c.statx(AT_FDCWD, name, AT_STATX_DONT_SYNC, STATX_TYPE, this.#chunk);
    return this.#unlessGone(path, ask) === undefined ? undefined : nodeInfo(this.#view);
  }

  async canOpenExclusively(path: string, signal: AbortSignal): Promise<boolean> {
    const descriptor = await this.#openDevice(path, O_EXCL, signal);
    if (descriptor === undefined) return false;
    return await unlessAborted(this.#closeDevice(path, descriptor).then(() => true), signal) ?? false;
  }

  async hold(path: string, signal: AbortSignal): Promise<HeldDevice | undefined> {
    const descriptor = await this.#openDevice(path, 0, signal);
    if (descriptor === undefined) return undefined;
    let closing: Promise<void> | undefined;
    return {
      deviceNumber: this.#deviceNumber(descriptor),
      path: `/proc/${Deno.pid}/fd/${descriptor}`,
      release: () => closing ??= this.#closeDevice(path, descriptor),
    };
  }

  async readDirect(
    path: string,
    parts: readonly DevicePart[],
    signal: AbortSignal,
  ): Promise<readonly Uint8Array[]> {
    const turn = await this.#begin(this.#reading, maxReading, path, signal);
    if (turn === undefined) {
      throw unreadable(path, signal.aborted ? tooLate : "because an earlier read of it hangs");
    }
    // A caller that gives up leaves the memory, the descriptor and the turn to the thread that still reads.
    const reading = this.#openAndRead(path, parts, signal).finally(() => this.#ended(this.#reading, turn));
    const read = await unlessAborted(reading, signal);
    if (read === undefined) throw unreadable(path, tooLate);
    return read;
  }

  async flush(path: string, signal: AbortSignal): Promise<boolean> {
    const turn = await this.#begin(this.#reading, maxReading, path, signal, `flush of ${path}`);
    // A caller that gives up leaves the descriptor and the turn to the thread that still waits.
    const flushing = turn && this.#openAndFlush(turn).finally(() => this.#ended(this.#reading, turn));
    const isFlushed = flushing && await unlessAborted(flushing, signal);
    if (isFlushed !== undefined) return isFlushed;
    const why = signal.aborted ? "it takes too long, or the call is over" : "an earlier flush of it hangs";
    throw new VolumeError("unavailable", `Cannot flush the device because ${why}: device=${path}`);
  }

  memoryFile(content: Uint8Array, sizeBytes: number): MemoryFile {
    const bytes = new Uint8Array(content);
    const descriptor = this.#c.memfd_create(this.#cString("rds-csi"), MFD_CLOEXEC);
    let isOpen = descriptor >= 0;
    const release = () => {
      if (isOpen) this.#c.close(descriptor);
      isOpen = false;
    };
    const isMade = isOpen && this.#c.ftruncate(descriptor, BigInt(sizeBytes)) === 0 &&
      Number(this.#c.pwrite(descriptor, bytes, BigInt(bytes.length), 0n)) === bytes.length;
    if (!isMade) {
      release();
      throw new VolumeError("unavailable", `Cannot make a file in memory: size=${sizeBytes}`);
    }
    return {
      path: `/proc/${Deno.pid}/fd/${descriptor}`,
      release,
      read: (length) => {
        const buffer = new Uint8Array(length);
        const count = Number(this.#c.pread(descriptor, buffer, BigInt(length), 0n));
        if (count === length) return buffer;
        throw new VolumeError("unavailable", `Cannot read a file in memory: bytes=${count} wanted=${length}`);
      },
    };
  }

  /**
   * In one turn: a close of the device that hangs says nothing about unwritten data. By fsync(2), because BLKFLSBUF
   * succeeds whatever becomes of the data, and leaves it in the device's own cache.
   */
  async #openAndFlush({ name }: DeviceCall): Promise<boolean> {
    const descriptor = await this.#c.openWaiting(name, O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) return false;
    try {
      return await this.#c.fsyncWaiting(descriptor) === 0;
    } finally {
      await this.#c.closeWaiting(descriptor);
    }
  }

  async #openAndRead(
    path: string,
    parts: readonly DevicePart[],
    signal: AbortSignal,
  ): Promise<readonly Uint8Array[]> {
    const descriptor = await this.#openDevice(path, O_DIRECT[Deno.build.arch], signal);
    if (descriptor === undefined) throw unreadable(path, "because it does not open");
    try {
      const all: Uint8Array[] = [];
      for (const part of parts) {
        if (signal.aborted) throw unreadable(path, tooLate);
        all.push(await this.#readPart(path, descriptor, part));
      }
      return all;
    } finally {
      await this.#c.closeWaiting(descriptor);
    }
  }

  async #readPart(path: string, descriptor: number, { offset, length }: DevicePart): Promise<Uint8Array> {
    const pointer = new BigUint64Array(1);
    if (this.#c.posix_memalign(new Uint8Array(pointer.buffer), directAlignment, BigInt(length)) !== 0) {
      throw unreadable(path, `because there is no memory: wanted=${length}`);
    }
    const memory = pointer[0]!;
    try {
      const count = Number(await this.#c.preadWaiting(descriptor, memory, BigInt(length), offset));
      // The reason is lost on the other thread.
      if (count < 0) throw unreadable(path, "because a read fails: see the node's kernel log", offset);
      if (count < length) throw unreadable(path, `whole: bytes=${count} wanted=${length}`, offset);
      const bytes = new Uint8Array(length);
      this.#c.copyOut(bytes, memory, BigInt(length));
      return bytes;
    } finally {
      this.#c.free(memory);
    }
  }

  /** The descriptor; undefined when it does not open, another open or close of it hangs, or it takes too long. */
  async #openDevice(path: string, flags: number, signal: AbortSignal): Promise<number | undefined> {
    const turn = await this.#begin(this.#underWay, maxWaiting, path, signal);
    if (turn === undefined) return undefined;
    const opening = this.#open(turn, flags);
    const descriptor = await unlessAborted(opening, signal);
    if (descriptor === undefined) void opening.then((late) => this.#closeLate(path, late));
    return descriptor === undefined || descriptor < 0 ? undefined : descriptor;
  }

  /**
   * A turn for a call; undefined when another one on the path hangs, or there is no free one before the signal is
   * aborted.
   */
  async #begin(
    calls: Set<DeviceCall>,
    most: number,
    path: string,
    signal: AbortSignal,
    key = path,
  ): Promise<DeviceCall | undefined> {
    while (!signal.aborted) {
      if (calls.values().some((call) => call.key === key)) return undefined;
      if (calls.size < most) {
        const call = { key, name: this.#cString(path) };
        calls.add(call);
        return call;
      }
      await unlessAborted(new Promise<void>((resolve) => this.#queue.push(resolve)), signal);
    }
    return undefined;
  }

  async #open(turn: DeviceCall, flags: number): Promise<number> {
    const descriptor = await this.#c.openWaiting(turn.name, flags | O_NONBLOCK | O_CLOEXEC);
    this.#ended(this.#underWay, turn);
    return descriptor;
  }

  /** The caller has given up what is open now. */
  async #closeLate(path: string, descriptor: number): Promise<void> {
    if (descriptor >= 0) await this.#closeDevice(path, descriptor);
  }

  async #closeDevice(path: string, descriptor: number): Promise<void> {
    const call = { key: path, name: new Uint8Array() };
    this.#underWay.add(call);
    await this.#c.closeWaiting(descriptor);
    this.#ended(this.#underWay, call);
  }

  #ended(calls: Set<DeviceCall>, call: DeviceCall): void {
    calls.delete(call);
    for (const resume of this.#queue.splice(0)) resume();
  }

  #deviceNumber(descriptor: number): string | undefined {
    const buffer = new Uint8Array(256);
    const flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
    if (this.#c.statx(descriptor, this.#cString(""), flags, STATX_TYPE, buffer) < 0) return undefined;
    return nodeInfo(new DataView(buffer.buffer)).deviceNumber;
  }

  /** Unloads the library. */
  close(): void {
    this.#library?.close();
    this.#library = undefined;
  }

  get #c(): Deno.DynamicLibrary<typeof functions>["symbols"] {
    this.#library ??= Deno.dlopen(libcPaths[Deno.build.arch], functions);
    return this.#library.symbols;
  }

  #readAll(descriptor: number, path: string): Uint8Array | undefined {
    const chunks: Uint8Array[] = [];
    const buffer = this.#chunk;
    for (let total = 0; total <= maxFileBytes;) {
      const length = this.#unlessGone(path, () => this.#c.read(descriptor, buffer, BigInt(buffer.length)));
      if (length === undefined) return undefined;
      if (length === 0) return concatenate(chunks, total);
      chunks.push(buffer.slice(0, length));
      total += length;
      if (total < attributeBytes && path.startsWith("/sys/")) return chunks[0]!;
    }
    throw new VolumeError("unavailable", `Cannot read ${path} because it is too long: most=${maxFileBytes}`);
  }

  #readFolder(descriptor: number, path: string): readonly string[] | undefined {
    const names: string[] = [];
    const buffer = this.#chunk;
    for (;;) {
      const length = this.#unlessGone(
        path,
        () => this.#c.getdents64(descriptor, buffer, BigInt(buffer.length)),
      );
      if (length === undefined) return undefined;
      if (length === 0) return names.filter((name) => name !== "." && name !== "..");
      names.push(...entryNames(buffer, this.#view, length, this.#decoder));
    }
  }

  #openToRead(path: string): number | undefined {
    const name = this.#cString(path);
    return this.#unlessGone(path, () => this.#c.open(name, O_CLOEXEC | O_NONBLOCK));
  }

  #unlessGone(path: string, ask: () => number | bigint): number | undefined {
    return unlessGone(path, ask, () => this.#errno());
  }

  #cString(text: string): Uint8Array<ArrayBuffer> {
    if (text.includes("\0")) throw new VolumeError("invalid", "Cannot use a path with a NUL character");
    return this.#encoder.encode(text + "\0");
  }

  #errno(): number {
    this.#c.memcpy(this.#errnoCopy, this.#c.__errno_location(), 4n);
    return new DataView(this.#errnoCopy.buffer).getInt32(0, true);
  }
}

/** Returns the result of `work`; undefined when the signal is aborted first. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: aborted, resolve: abort } = Promise.withResolvers<undefined>();
  const onAbort = () => abort(undefined);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

const tooLate = "because it takes too long, or the call is over";

function unreadable(path: string, why: string, offset?: bigint): VolumeError {
  const where = offset === undefined ? "" : ` offset=${offset}`;
  return new VolumeError("unavailable", `Cannot read the device ${why}: device=${path}${where}`);
}

/**
 * Reads names from `struct linux_dirent64`: inode and offset of 8 bytes, record length of 2, type of 1, name
 * (getdents(2)).
 */
function entryNames(
  buffer: Uint8Array<ArrayBuffer>,
  view: DataView,
  length: number,
  decoder: TextDecoder,
): readonly string[] {
  const names: string[] = [];
  for (let at = 0; at < length; at += view.getUint16(at + 16, true)) {
    const start = at + 19;
    names.push(decoder.decode(buffer.subarray(start, buffer.indexOf(0, start))));
  }
  return names;
}

/**
 * Mode at 28, device number at 128 and 132, that of the file system at 136 and 140 of `struct statx`, which is the same on
 * every architecture (statx(2)).
 */
function nodeInfo(view: DataView): NodeInfo {
  const numberAt = (offset: number) => `${view.getUint32(offset, true)}:${view.getUint32(offset + 4, true)}`;
  const filesystemNumber = numberAt(136);
  switch (view.getUint16(28, true) & 0o170000) {
    case 0o040000:
      return { kind: "directory", filesystemNumber };
    case 0o100000:
      return { kind: "file", filesystemNumber };
    case 0o060000:
      return { kind: "block", deviceNumber: numberAt(128), filesystemNumber };
    default:
      return { kind: "other", filesystemNumber };
  }
}
