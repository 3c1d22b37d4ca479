import type { KernelFiles } from "../host/kernel_files.ts";
import { VolumeError } from "../volume/errors.ts";

/** Whether mounts below a mount are propagated from here (`shared`), to here (`slave`), both, or neither. */
export type Propagation = "shared" | "slave" | "shared and slave" | "private";

/** The propagation of each mount by its id, from the optional fields of mountinfo (proc_pid_mountinfo(5)). */
export function parsePropagation(text: string): ReadonlyMap<number, Propagation> {
  return new Map(
    text.split("\n").filter((line) => line !== "").map((line) => {
      const fields = line.split(" ");
      const optional = fields.slice(6, fields.indexOf("-", 6));
      return [Number(fields[0]), propagationOf(optional)];
    }),
  );
}

function propagationOf(optional: readonly string[]): Propagation {
  const shared = optional.some((field) => field.startsWith("shared:"));
  const slave = optional.some((field) => field.startsWith("master:"));
  if (shared) return slave ? "shared and slave" : "shared";
  return slave ? "slave" : "private";
}

/**
 * The propagation of this process's mounts, by their ids.
 *
 * @throws {VolumeError} unavailable when the mount table cannot be read
 */
export function readPropagation(files: KernelFiles): ReadonlyMap<number, Propagation> {
  const text = files.readText("/proc/self/mountinfo");
  if (text === undefined) throw new VolumeError("unavailable", "Cannot read the mount table");
  return parsePropagation(text);
}
