import type { KernelFiles } from "./kernel_files.ts";

/**
 * `/proc/locks`: `1: FLOCK ADVISORY WRITE 1234 fe:01:5678 0 EOF`; a process that waits for it has `->` after the
 * number.
 */
const lockForm = /^\d+: FLOCK +\S+ +\S+ +(-?\d+) +[0-9a-f]+:[0-9a-f]+:(\d+) /;

/** SIGKILL (9) in the masks of pending signals of `/proc/<pid>/status`. */
const killPending = 1n << 8n;
/** PF_EXITING in the flags of `/proc/<pid>/stat`. */
const exiting = 0x4;
/** The position of the flags, counted from the state, which is the first word after the name. */
const flagsAt = 6;

/**
 * The processes that have locked a file of this inode by flock(2), on any file system: the caller wants all of them
 * gone. Undefined when one of them is not visible here, or there is none.
 *
 * @throws {VolumeError} unavailable when it cannot be read
 */
export function lockHolders(files: KernelFiles, inode: bigint): readonly number[] | undefined {
  const pids = (files.readText("/proc/locks") ?? "").split("\n").flatMap((line) => {
    const match = lockForm.exec(line);
    return match !== null && BigInt(match[2]!) === inode ? [Number(match[1])] : [];
  });
  return pids.length === 0 || pids.some((pid) => pid <= 0) ? undefined : pids;
}

/**
 * Whether a process certainly ends and runs none of its own code again: every thread of it has ended, is ending, or has
 * a pending SIGKILL that it takes as soon as the kernel lets it. A process that is gone is ending too.
 *
 * @throws {VolumeError} unavailable when it cannot be read
 */
export function isEnding(files: KernelFiles, pid: number): boolean {
  const threads = files.list(`/proc/${pid}/task`) ?? [];
  return threads.every((thread) => isThreadEnding(files, `/proc/${pid}/task/${thread}`));
}

function isThreadEnding(files: KernelFiles, folder: string): boolean {
  const stat = files.readText(`${folder}/stat`);
  const status = files.readText(`${folder}/status`);
  if (stat === undefined || status === undefined) return true;
  const text = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (["Z", "X"].includes(text[0]!) || (Number(text[flagsAt]) & exiting) !== 0) return true;
  return [...status.matchAll(/^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$/gm)]
    .some(([, mask]) => (BigInt(`0x${mask}`) & killPending) !== 0n);
}
