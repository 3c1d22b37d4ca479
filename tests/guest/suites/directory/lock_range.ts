// Runs in a guest: `lock_range.ts PATH START LENGTH [hold]` locks bytes of a file by fcntl(2), as databases do. It prints
// `locked`, or `refused` where another process has locked one of them; with `hold` it keeps the lock until it can read
// /tmp/release.

/** Of Linux on 64 bits (fcntl(2), open(2), errno(3)). */
const linux = { F_SETLK: 6, F_WRLCK: 1, O_RDWR: 2, EACCES: 13, EAGAIN: 11 };

const libc = Deno.dlopen("libc.so.6", {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  fcntl: { parameters: ["i32", "i32", "buffer"], result: "i32" },
  __errno_location: { parameters: [], result: "pointer" },
});

const [path = "", start = "", length = "", hold] = Deno.args;
const descriptor = libc.symbols.open(new TextEncoder().encode(`${path}\0`), linux.O_RDWR);
if (descriptor < 0) throw new Error(`cannot open ${path}: errno=${errno()}`);
// struct flock: l_type, l_whence, l_start, l_len, l_pid, aligned to 8 bytes.
const wanted = new DataView(new ArrayBuffer(32));
wanted.setInt16(0, linux.F_WRLCK, true);
wanted.setBigInt64(8, BigInt(start), true);
wanted.setBigInt64(16, BigInt(length), true);
if (libc.symbols.fcntl(descriptor, linux.F_SETLK, new Uint8Array(wanted.buffer)) === 0) {
  say("locked");
  if (hold === "hold") await Deno.readTextFile("/tmp/release");
} else {
  const error = errno();
  if (error !== linux.EACCES && error !== linux.EAGAIN) {
    throw new Error(`cannot lock ${path}: errno=${error}`);
  }
  say("refused");
}

function errno(): number {
  return new Deno.UnsafePointerView(libc.symbols.__errno_location()!).getInt32();
}

function say(word: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${word}\n`));
}
