/** A part of a file that others may share. Two files share it when both hold this very object. */
export interface Extent {
  readonly bytes: bigint;
}

/** What a file takes. */
export interface Allocation {
  /** What it shares, or has shared. */
  readonly extents: readonly Extent[];
  /** All that is written of it, what it shares included. */
  readonly allocatedBytes: bigint;
}

/** The extents of a file and of its copy: what it had for itself alone so far becomes one of them. */
export function shareExtents(extents: readonly Extent[], allocatedBytes: bigint): readonly Extent[] {
  const own = allocatedBytes - sum(extents);
  return own > 0n ? [...extents, { bytes: own }] : extents;
}

/**
 * Bytes that files take together, shared ones counted once. What is written over a shared part is not seen to take
 * space of its own: near enough for a pool that is not about to be full.
 */
export function usedBytes(files: readonly Allocation[]): bigint {
  const shared = new Set(files.flatMap(({ extents }) => extents));
  return files.reduce((total, { extents, allocatedBytes }) => {
    const own = allocatedBytes - sum(extents);
    return own > 0n ? total + own : total;
  }, sum(shared));
}

function sum(extents: Iterable<Extent>): bigint {
  let total = 0n;
  for (const { bytes } of extents) total += bytes;
  return total;
}
