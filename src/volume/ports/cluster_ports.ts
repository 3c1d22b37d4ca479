import type { CallContext } from "./system.ts";

/** A VolumeAttachment of this driver. */
export interface ClusterAttachment {
  /** Undefined when it cannot be told which volume it is about. */
  readonly volumeId: string | undefined;
  readonly nodeName: string;
  readonly attached: boolean;
  /** Whether it is going away. */
  readonly deleting: boolean;
  /** What was answered when it was attached: the publish context. */
  readonly publishContext: Readonly<Record<string, string>>;
}

/** What the loops need to know of the cluster. */
export interface ClusterObjects {
  /**
   * Every VolumeAttachment of this driver, with the volumes' objects read anew.
   *
   * @throws {VolumeError} unavailable when not all of them can be read; precondition when they do not tell who has a volume
   */
  attachments(signal: AbortSignal): Promise<readonly ClusterAttachment[]>;
  /** The volume context of a volume, as of the last reading; undefined when it is not known. */
  volumeContext(volumeId: string): Readonly<Record<string, string>> | undefined;
}

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
}

/** The nodes that were named on the command line: all there is where there is no cluster to ask. */
export function fixedNodes(nodeIds: readonly string[]): NodeDirectory {
  const known = new Set(nodeIds);
  return { isKnown: (nodeId) => Promise.resolve(known.has(nodeId)) };
}
