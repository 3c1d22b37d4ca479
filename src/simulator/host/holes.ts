import { libcPaths } from "../../host/libc.ts";

const functions = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  fallocate: { parameters: ["i32", "i32", "i64", "i64"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

const O_RDWR = 2;
const O_CLOEXEC = 0o2000000;
/** `FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE` (linux/falloc.h). */
const punch = 3;

/** By what one file is told from another. */
interface FileIdentity {
  readonly ino: number | null;
  readonly dev: number;
}

/**
 * Gives a part of a file back to its file system: it reads as zeros afterwards. Nothing happens where the path has become
 * another file, where the file system makes no holes, or where the C library may not be called.
 */
export function punchHole(path: string, { ino, dev }: FileIdentity, offset: number, length: number): void {
  try {
    const found = Deno.statSync(path);
    if (found.ino !== ino || found.dev !== dev) return;
    punchFile(path, BigInt(offset), BigInt(length));
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable || error instanceof Deno.errors.NotFound) return;
    throw error;
  }
}

function punchFile(path: string, offset: bigint, length: bigint): void {
  const library = Deno.dlopen(libcPaths[Deno.build.arch], functions);
  try {
    const { open, close, fallocate } = library.symbols;
    const descriptor = open(new TextEncoder().encode(`${path}\0`), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return;
    fallocate(descriptor, punch, offset, length);
    close(descriptor);
  } finally {
    library.close();
  }
}
