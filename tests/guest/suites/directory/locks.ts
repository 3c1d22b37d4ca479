import type { Guest } from "../../kit/guest.ts";

/** A lock that a process in a guest holds. */
export interface HeldLock {
  /** Releases it, and waits for the process's end. */
  release(): Promise<void>;
}

/** Locks a file by flock(2), which NFSv4 keeps as a lock of the server; returns once it is held. */
export async function holdLock(guest: Guest, path: string): Promise<HeldLock> {
  await guest.sh("rm -f /tmp/release && mkfifo /tmp/release");
  const locked = Promise.withResolvers<void>();
  const script = `flock -x ${path} sh -c 'echo locked; read -r _ < /tmp/release'`;
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
