import type { ClaimName } from "../model/publish_context.ts";
import type { Holder, UnfencedNode } from "../model/record.ts";
import type { CallContext } from "./system.ts";

/** A node that would write to a volume beside those that have it. */
export interface MigrationPair {
  readonly volumeId: string;
  /** The node that joins. */
  readonly nodeId: string;
  readonly holders: readonly Holder[];
}

/** Decides which nodes may share a volume for a migration. */
export interface MigrationPairs {
  /**
   * Why a second node may not write to a volume beside its holder, for people; undefined when it may.
   *
   * @throws {VolumeError} unavailable when that is unknown
   */
  reasonAgainst(pair: MigrationPair, signal: AbortSignal): Promise<string | undefined>;
}

/** The consents of claims' owners. A consent adds to a node's own checks of the device and replaces none. */
export interface FormatConsents {
  /** The claim that is bound to a volume, as of the last read; undefined when it is not known. */
  claimOf(volumeId: string): ClaimName | undefined;
  /**
   * Whether the owner of the volume's claim allows a file system to be made in the epoch of that counter.
   *
   * @throws {Error} when the cluster cannot be asked
   */
  allowsFormat(volumeId: string, epochCounter: number, signal: AbortSignal): Promise<boolean>;
}

/** Lets any two nodes share a volume. */
export const anyPair: MigrationPairs = { reasonAgainst: () => Promise.resolve(undefined) };

/** Finds nodes of the cluster. */
export interface NodeDirectory {
  /** Whether the cluster has a node of that id. */
  isKnown(nodeId: string, context: CallContext): Promise<boolean>;
  /** The machine behind that id right now, see `machineHash()`; undefined when it is unknown. */
  machineOf(nodeId: string, context: CallContext): Promise<string | undefined>;
}

/** A node that has left a volume while other nodes kept it. */
export interface DetachedNode extends UnfencedNode {
  readonly volumeId: string;
}

/** What the cluster knows of nodes that have left a volume. */
export interface DetachedNodes {
  /**
   * Why it is unknown whether the node has given up the volume, for people; undefined when its kubelet says that it
   * has. A cluster that does not answer is such a reason.
   */
  reasonAgainst(node: DetachedNode, signal: AbortSignal): Promise<string | undefined>;
}

/** For a controller without a cluster: the state of every node is unknown. */
export const unknownDetachedNodes: DetachedNodes = {
  reasonAgainst: () => Promise.resolve("there is no cluster that knows"),
};

/** The nodes from the command line, for a controller without a cluster. */
export function fixedNodes(nodeIds: readonly string[]): NodeDirectory {
  const known = new Set(nodeIds);
  return {
    isKnown: (nodeId) => Promise.resolve(known.has(nodeId)),
    machineOf: () => Promise.resolve(undefined),
  };
}
