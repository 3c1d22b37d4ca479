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

/** Writes attributes of /sys, which Deno's own functions must not touch under scoped permissions. */
export interface SysfsWriter {
  /**
   * Writes one attribute.
   *
   * @throws {VolumeError} internal when it is none of those that may be written; unavailable when it cannot be written
   */
  write(path: string, value: number): void;
}

/** Writes through the C library, which is loaded for each write: they are few. */
export const libcSysfsWriter: SysfsWriter = {
  write(path, value) {
    if (!writable.some((form) => form.test(path))) {
      throw new VolumeError("internal", `Cannot write ${path} as it is not on the list`);
    }
    const library = Deno.dlopen(libcPaths[Deno.build.arch], functions);
    try {
      writeOnce(library.symbols, path, new TextEncoder().encode(`${value}\n`));
    } finally {
      library.close();
    }
  },
};

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
