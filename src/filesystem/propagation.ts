import type { KernelFiles } from "../host/kernel_files.ts";
import { VolumeError } from "../volume/errors.ts";

/** Whether mounts below a mount are propagated from here (`shared`), to here (`slave`), both, or neither. */
export type Propagation = "shared" | "slave" | "shared and slave" | "private";

/** The groups of a mount: it shares its mounts with the first, and receives those of the second. */
export interface PeerGroups {
  readonly shared: string | undefined;
  readonly master: string | undefined;
}

/** The groups of each mount by its id, from the optional fields of mountinfo (proc_pid_mountinfo(5)). */
export function parsePeerGroups(text: string): ReadonlyMap<number, PeerGroups> {
  return new Map(
    text.split("\n").filter((line) => line !== "").map((line) => {
      const fields = line.split(" ");
      const optional = fields.slice(6, fields.indexOf("-", 6));
      const group = (name: string) =>
        optional.find((field) => field.startsWith(`${name}:`))?.slice(name.length + 1);
      return [Number(fields[0]), { shared: group("shared"), master: group("master") }];
    }),
  );
}

/** The propagation of each mount by its id. */
export function parsePropagation(text: string): ReadonlyMap<number, Propagation> {
  return new Map([...parsePeerGroups(text)].map(([mountId, groups]) => [mountId, propagationOf(groups)]));
}

function propagationOf({ shared, master }: PeerGroups): Propagation {
  if (shared !== undefined) return master === undefined ? "shared" : "shared and slave";
  return master === undefined ? "private" : "slave";
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
