import type { Guest } from "../../kit/guest.ts";

/** Where {@linkcode installRanges} puts the program in a guest. */
const rangeProgram = "/tmp/lock_range.ts";

/** A lock that a process in a guest holds. */
export interface HeldLock {
  /** Releases it, and waits for the process's end. */
  release(): Promise<void>;
}

/** Locks a file by flock(2), which NFSv4 keeps as a lock of the server; returns once it is held. */
export async function holdLock(guest: Guest, path: string): Promise<HeldLock> {
  return await hold(guest, `flock -x ${path} sh -c 'echo locked; read -r _ < /tmp/release'`);
}

/** Runs a script that prints `locked` once it holds its lock, and releases it when it can read /tmp/release. */
async function hold(guest: Guest, script: string): Promise<HeldLock> {
  await guest.sh("rm -f /tmp/release && mkfifo /tmp/release");
  const locked = Promise.withResolvers<void>();
  const command = await guest.start(script, { onLine: (line) => line === "locked" && locked.resolve() });
  const failed = command.end.then(({ status, stderr }) => {
    throw new Error(`the holder of a lock ended with ${status}: ${stderr}`);
  });
  failed.catch(() => {}); // Every holder ends, and this race is over by then.
  await Promise.race([locked.promise, failed]);
  return {
    async release() {
      await guest.sh("echo > /tmp/release");
      const { status, stderr } = await command.end;
      if (status !== 0) throw new Error(`the holder of a lock ended with ${status}: ${stderr}`);
    },
  };
}

/** Puts {@linkcode tryRange}'s program into a guest. */
export async function installRanges(guest: Guest): Promise<void> {
  await guest.write(rangeProgram, await Deno.readTextFile(new URL("lock_range.ts", import.meta.url)));
}

/** Bytes of a file: the number of the first one, and how many. */
export type ByteRange = readonly [start: number, length: number];

/** Locks bytes of a file by fcntl(2), as databases do; returns once they are held. */
export async function holdRange(guest: Guest, path: string, range: ByteRange): Promise<HeldLock> {
  return await hold(guest, `exec ${rangeCommand(path, range)} hold`);
}

/** Tries to lock bytes of a file by fcntl(2), and releases them at once. */
export async function tryRange(guest: Guest, path: string, range: ByteRange): Promise<string> {
  return await guest.sh(rangeCommand(path, range));
}

function rangeCommand(path: string, range: ByteRange): string {
  return `/opt/tools/deno run --allow-all --no-config --no-lock ${rangeProgram} ${path} ${range.join(" ")}`;
}
