import { VolumeError } from "../volume/errors.ts";
import { libcPaths } from "./libc.ts";

/** Everything that is called in the C library to write an attribute. */
const functions = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  write: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  close: { parameters: ["i32"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

const O_WRONLY = 0o1;
const O_CLOEXEC = 0o2000000;

/** Every attribute that may be written: none of them drops, resets or detaches anything. */
const writable: readonly RegExp[] = [/^\/sys\/class\/nvme\/nvme[0-9]+\/fast_io_fail_tmo$/];
/** Every attribute that may be held for a tool that writes it. */
const holdable: readonly RegExp[] = [/^\/sys\/class\/nvme\/nvme[0-9]+\/delete_controller$/];

/** Writes attributes of /sys, which Deno's own functions must not touch under scoped permissions. */
export interface SysfsWriter {
  /**
   * Writes one attribute.
   *
   * @throws {VolumeError} internal when it is none of those that may be written; unavailable when it cannot be written
   */
  write(path: string, value: number): void;
  /**
   * Holds one attribute, so that a tool can write that very one: at the path itself another device's may lie by then.
   * Undefined when it is gone.
   *
   * @throws {VolumeError} internal when it is none of those that may be held
   */
  hold(path: string): HeldAttribute | undefined;
}

/** An attribute that is held. */
export interface HeldAttribute {
  /** Where a tool finds it, and nothing else: once the device is gone, a write there fails. */
  readonly path: string;
  release(): void;
}

/** Writes through the C library, which is loaded for each write: they are few. */
export const libcSysfsWriter: SysfsWriter = {
  write(path, value) {
    assertListed(path, writable);
    const library = Deno.dlopen(libcPaths[Deno.build.arch], functions);
    try {
      writeOnce(library.symbols, path, new TextEncoder().encode(`${value}\n`));
    } finally {
      library.close();
    }
  },
  hold(path) {
    assertListed(path, holdable);
    const library = Deno.dlopen(libcPaths[Deno.build.arch], functions);
    const name = new TextEncoder().encode(path + "\0");
    const descriptor = library.symbols.open(name, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) {
      library.close();
      return undefined;
    }
    return {
      path: `/proc/${Deno.pid}/fd/${descriptor}`,
      release() {
        library.symbols.close(descriptor);
        library.close();
      },
    };
  },
};

function assertListed(path: string, list: readonly RegExp[]): void {
  if (list.some((form) => form.test(path))) return;
  throw new VolumeError("internal", `Cannot write ${path} as it is not on the list`);
}

function writeOnce(
  libc: Deno.DynamicLibrary<typeof functions>["symbols"],
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
): void {
  const descriptor = libc.open(new TextEncoder().encode(path + "\0"), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) throw new VolumeError("unavailable", `Cannot write ${path} as it does not open`);
  const written = libc.write(descriptor, bytes, BigInt(bytes.length));
  libc.close(descriptor);
  if (Number(written) === bytes.length) return;
  throw new VolumeError("unavailable", `Cannot write ${path} as the kernel does not take the value`);
}
