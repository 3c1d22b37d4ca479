import type { CallContext } from "./system.ts";

/** Who may share a volume for a migration. */
export interface MigrationPairs {
  /**
   * Why a second node may not have a volume for writing beside the one that holds it, in words; undefined when it may.
   *
   * @throws {VolumeError} unavailable when that cannot be told
   */
  reasonAgainst(volumeId: string, signal: AbortSignal): Promise<string | undefined>;
}

/** Any two nodes may. */
export const anyPair: MigrationPairs = { reasonAgainst: () => Promise.resolve(undefined) };

/** Which nodes exist. */
export interface NodeDirectory {
  /** Whether a node of that id is known to the cluster. */
  isKnown(nodeId: string, context: CallContext): Promise<boolean>;
}

/** The nodes that were named on the command line: all there is where there is no cluster to ask. */
export function fixedNodes(nodeIds: readonly string[]): NodeDirectory {
  const known = new Set(nodeIds);
  return { isKnown: (nodeId) => Promise.resolve(known.has(nodeId)) };
}
