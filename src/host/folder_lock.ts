import { VolumeError } from "../volume/errors.ts";
import type { Clock } from "../volume/ports/system.ts";

/** Releases a folder. A second call does nothing. */
export type Release = () => void;

const pollMs = 100;

/**
 * Takes a folder for this process alone, by flock(2) on a file in it, and waits until the present holder releases it.
 * However a process ends, the kernel releases its lock; the tools that it has started do not keep the folder.
 *
 * @param timeoutMs how long it waits, in milliseconds
 * @param name the file's name; each name is a separate lock
 * @throws {VolumeError} precondition when another process still holds it then
 */
export async function lockFolder(
  folder: string,
  clock: Clock,
  timeoutMs: number,
  name = "lock",
): Promise<Release> {
  const file = await Deno.open(`${folder}/${name}`, { write: true, create: true, mode: 0o600 });
  const untilMs = clock.monotonicMs() + timeoutMs;
  while (!await file.tryLock(true)) {
    if (clock.monotonicMs() >= untilMs) {
      file.close();
      throw new VolumeError(
        "precondition",
        `Cannot use the folder because another process has it: path=${folder} waited-ms=${timeoutMs}; ` +
          "two nodes cannot share a folder, and an earlier process has to end first",
      );
    }
    await clock.sleep(pollMs);
  }
  let isMine = true;
  return () => {
    if (isMine) file.close();
    isMine = false;
  };
}
