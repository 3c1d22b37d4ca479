import { blockBytes } from "./stamp.ts";

const functions = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  pread: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  pwrite: { parameters: ["i32", "buffer", "usize", "i64"], result: "isize" },
  __errno_location: { parameters: [], result: "pointer" },
} as const;

const c = Deno.dlopen("libc.so.6", functions).symbols;
const O_RDWR = 0o2;
const O_DSYNC = 0o10000;
const O_DIRECT = 0o40000;
const alignment = 4096;

/** A system call that failed. */
export class CallError extends Error {
  readonly errno: number;

  constructor(what: string, errno: number) {
    super(`${what}: errno ${errno}`);
    this.errno = errno;
  }
}

/** A file or device past the page cache, a block at a time. It is never created. */
export class DirectFile {
  readonly #descriptor: number;

  /**
   * @param durable whether a write ends only when the target has the block for good
   * @throws {CallError}
   */
  constructor(path: string, durable: boolean) {
    const name = new TextEncoder().encode(`${path}\0`);
    this.#descriptor = c.open(name, O_RDWR | O_DIRECT | (durable ? O_DSYNC : 0));
    if (this.#descriptor < 0) throw new CallError(`open ${path}`, errno());
  }

  /** @throws {CallError} */
  read(block: Uint8Array<ArrayBuffer>, index: number): void {
    this.#whole("read", c.pread(this.#descriptor, block, BigInt(blockBytes), BigInt(index * blockBytes)));
  }

  /** @throws {CallError} */
  write(block: Uint8Array<ArrayBuffer>, index: number): void {
    this.#whole("write", c.pwrite(this.#descriptor, block, BigInt(blockBytes), BigInt(index * blockBytes)));
  }

  close(): void {
    c.close(this.#descriptor);
  }

  #whole(what: string, count: number | bigint): void {
    if (Number(count) < 0) throw new CallError(what, errno());
    if (Number(count) !== blockBytes) throw new Error(`${what}: only ${count} bytes`);
  }
}

/** Memory for a block, where the kernel takes it past the page cache. */
export function alignedBlock(): Uint8Array<ArrayBuffer> {
  const room = new Uint8Array(blockBytes + alignment);
  const address = Deno.UnsafePointer.value(Deno.UnsafePointer.of(room));
  const skip = (alignment - Number(BigInt(address) % BigInt(alignment))) % alignment;
  return room.subarray(skip, skip + blockBytes);
}

function errno(): number {
  const at = c.__errno_location();
  return at === null ? 0 : new Deno.UnsafePointerView(at).getInt32();
}
