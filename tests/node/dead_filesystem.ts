import { libcPaths } from "../../src/host/libc.ts";

const functions = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  mount: { parameters: ["buffer", "buffer", "buffer", "u64", "buffer"], result: "i32" },
  umount2: { parameters: ["buffer", "i32"], result: "i32" },
} as const satisfies Deno.ForeignLibraryInterface;

const O_RDWR = 2;
const O_CLOEXEC = 0o2000000;
const MNT_DETACH = 2;

/** What this machine lacks for a hanging file system; undefined when nothing is missing. Printed once. */
export const deadFilesystemMissing = whatIsMissing();
if (deadFilesystemMissing !== undefined) {
  Deno.stderr.writeSync(new TextEncoder().encode(`ignored: ${deadFilesystemMissing}\n`));
}

function whatIsMissing(): string | undefined {
  try {
    return Deno.statSync("/dev/fuse").isCharDevice ? undefined : "/dev/fuse is not FUSE";
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "what hangs needs FUSE (/dev/fuse)";
    throw error;
  }
}

/**
 * A mounted file system whose server never answers, like a network file system whose server is gone: a process that
 * reads it hangs in the kernel, until {@linkcode DeadFilesystem.revive}.
 */
export class DeadFilesystem implements Disposable {
  readonly #path: string;
  readonly #libc = Deno.dlopen(libcPaths[Deno.build.arch], functions);
  #server: number;

  constructor(path: string) {
    this.#path = path;
    const { open, mount } = this.#libc.symbols;
    this.#server = open(cString("/dev/fuse"), O_RDWR | O_CLOEXEC);
    const options = `fd=${this.#server},rootmode=40000,user_id=0,group_id=0`;
    const failed = mount(cString("dead"), cString(path), cString("fuse.dead"), 0n, cString(options)) !== 0;
    if (this.#server >= 0 && !failed) return;
    this.#libc.close();
    throw new Error(`Cannot mount a dead file system at ${path}`);
  }

  /** Releases all hanging processes, and removes the mount. */
  revive(): void {
    if (this.#server < 0) return;
    this.#libc.symbols.close(this.#server);
    this.#server = -1;
    if (this.#libc.symbols.umount2(cString(this.#path), MNT_DETACH) !== 0) {
      throw new Error(`Cannot unmount the dead file system at ${this.#path}`);
    }
  }

  [Symbol.dispose](): void {
    this.revive();
    this.#libc.close();
  }
}

function cString(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text + "\0");
}
