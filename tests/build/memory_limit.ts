import type { Part } from "../support/parts.ts";

/** A limit of the memory that a process takes from now on, by a cgroup. */
export interface MemoryLimit {
  readonly kind: string;
  /** The most that was used so far, in bytes. */
  peakBytes(): number;
  remove(): void;
}

/**
 * Limits the memory of a process; undefined where this machine's cgroups cannot be written, or have no memory: then only its
 * resident memory can be judged.
 */
export function limitMemory({ pid }: Pick<Part, "pid">, bytes: number): MemoryLimit | undefined {
  const kinds = [
    { kind: "cgroup v2", root: "/sys/fs/cgroup", limit: "memory.max", peak: "memory.peak" },
    {
      kind: "cgroup v1",
      root: "/sys/fs/cgroup/memory",
      limit: "memory.limit_in_bytes",
      peak: "memory.max_usage_in_bytes",
    },
  ];
  for (const { kind, root, limit, peak } of kinds) {
    const folder = `${root}/rds-csi-test-${pid}`;
    try {
      Deno.mkdirSync(folder);
    } catch {
      continue; // Not this kind, or not root.
    }
    const remove = () => Deno.removeSync(folder);
    try {
      // Not made here: in a folder that is no cgroup they are missing.
      Deno.writeTextFileSync(`${folder}/${limit}`, String(bytes), { create: false });
      Deno.writeTextFileSync(`${folder}/cgroup.procs`, String(pid), { create: false });
      return { kind, peakBytes: () => Number(Deno.readTextFileSync(`${folder}/${peak}`)), remove };
    } catch {
      remove();
    }
  }
  return undefined;
}
