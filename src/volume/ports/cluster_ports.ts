import type { UnfencedNode } from "../model/record.ts";
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

/** What owners of claims allow. Its answer adds to a node's own checks of the device and replaces none. */
export interface FormatConsents {
  /** The claim that is bound to a volume, as of the last reading; undefined when it is not known. */
  claimOf(volumeId: string): ClaimName | undefined;
  /**
   * Whether the owner of the volume's claim allows a file system to be made in the epoch of that counter.
   *
   * @throws {Error} when the cluster cannot be asked
   */
  allowsFormat(volumeId: string, epochCounter: number, signal: AbortSignal): Promise<boolean>;
}

/** A claim, as its owner names it. */
export interface ClaimName {
  readonly namespace: string;
  readonly name: string;
}

/** Any two nodes may. */
export const anyPair: MigrationPairs = { reasonAgainst: () => Promise.resolve(undefined) };

/** Which nodes exist. */
export interface NodeDirectory {
  /** Whether a node of that id is known to the cluster. */
  isKnown(nodeId: string, context: CallContext): Promise<boolean>;
  /** The machine behind that id right now, see `machineHash()`; undefined when that cannot be told. */
  machineOf(nodeId: string, context: CallContext): Promise<string | undefined>;
}

/** A node that has left a volume which other nodes go on holding. */
export interface DetachedNode extends UnfencedNode {
  readonly volumeId: string;
}

/** What the cluster knows of nodes that have left a volume. */
export interface DetachedNodes {
  /**
   * Why it is not known that the node has given the volume up, in words; undefined when its kubelet says that it has. A cluster
   * that does not answer is such a reason.
   */
  reasonAgainst(node: DetachedNode, signal: AbortSignal): Promise<string | undefined>;
}

/** Nothing is known of any node. */
export const unknownDetachedNodes: DetachedNodes = {
  reasonAgainst: () => Promise.resolve("there is no cluster that knows"),
};

/** The nodes that were named on the command line: all there is where there is no cluster to ask. */
export function fixedNodes(nodeIds: readonly string[]): NodeDirectory {
  const known = new Set(nodeIds);
  return {
    isKnown: (nodeId) => Promise.resolve(known.has(nodeId)),
    machineOf: () => Promise.resolve(undefined),
  };
}
