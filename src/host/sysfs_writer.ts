import { VolumeError } from "../volume/errors.ts";
import { libcPaths } from "./libc.ts";

/** The functions of the C library for writing an attribute. */
const functions = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  write: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  close: { parameters: ["i32"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

type Library = Deno.DynamicLibrary<typeof functions>;

const O_WRONLY = 0o1;
const O_CLOEXEC = 0o2000000;

/** The attributes that may be written: none of them drops, resets or detaches anything. */
const writable: readonly RegExp[] = [
  /^\/sys\/class\/nvme\/nvme[0-9]+\/fast_io_fail_tmo$/,
  /^\/sys\/fs\/nfs\/net\/nfs_client\/identifier$/,
];
/** The attributes that may be held for a tool that writes them. */
const holdable: readonly RegExp[] = [/^\/sys\/class\/nvme\/nvme[0-9]+\/delete_controller$/];

/** Writes attributes of /sys, which Deno's own functions must not touch under scoped permissions. */
export interface SysfsWriter {
  /**
   * Writes one attribute.
   *
   * @throws {VolumeError} internal when it may not be written; unavailable when it cannot be written
   */
  write(path: string, value: number | string): void;
  /**
   * Holds one attribute, so that a tool can write exactly this one: the path itself may belong to another device by
   * then. Undefined when it is gone.
   *
   * @throws {VolumeError} internal when it may not be held
   */
  hold(path: string): HeldAttribute | undefined;
}

/** A held attribute. */
export interface HeldAttribute {
  /** The path for a tool, which only leads to this attribute: once the device is gone, a write there fails. */
  readonly path: string;
  release(): void;
}

/** Writes through the C library, loaded at the first use: loading it takes ten milliseconds in an emulated guest. */
export class LibcSysfsWriter implements SysfsWriter {
  #library: Library | undefined;

  write(path: string, value: number | string): void {
    assertListed(path, writable);
    writeOnce(this.#c, path, new TextEncoder().encode(`${value}\n`));
  }

  hold(path: string): HeldAttribute | undefined {
    assertListed(path, holdable);
    const libc = this.#c;
    const descriptor = libc.open(new TextEncoder().encode(path + "\0"), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return undefined;
    return { path: `/proc/${Deno.pid}/fd/${descriptor}`, release: () => void libc.close(descriptor) };
  }

  /** Unloads the library, once nothing is held any more. */
  close(): void {
    this.#library?.close();
    this.#library = undefined;
  }

  get #c(): Library["symbols"] {
    this.#library ??= Deno.dlopen(libcPaths[Deno.build.arch], functions);
    return this.#library.symbols;
  }
}

function assertListed(path: string, list: readonly RegExp[]): void {
  if (list.some((form) => form.test(path))) return;
  throw new VolumeError("internal", `Cannot write ${path} because it is not on the list`);
}

function writeOnce(
  libc: Library["symbols"],
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
): void {
  const descriptor = libc.open(new TextEncoder().encode(path + "\0"), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) throw new VolumeError("unavailable", `Cannot write ${path} because it does not open`);
  const written = libc.write(descriptor, bytes, BigInt(bytes.length));
  libc.close(descriptor);
  if (Number(written) === bytes.length) return;
  throw new VolumeError("unavailable", `Cannot write ${path} because the kernel does not take the value`);
}
