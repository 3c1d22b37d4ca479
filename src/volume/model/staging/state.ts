import type { FilesystemType } from "../capabilities.ts";
import type { MapKind } from "../device_layer.ts";

/**
 * A node's record of a volume: three parts, each changed for one reason, in one file. It is written and synced before the
 * node connects, because an unstage gets no context, and because nothing else shows how far mkfs came.
 */
export interface StagingState {
  readonly volumeId: string;
  readonly intent: Intent;
  readonly content: Content;
  readonly here: Here;
}

/**
 * What the kubelet wants of the volume, and where its publish context says that it is. Nothing that is found here changes
 * it, but the size, which only grows.
 */
export interface Intent {
  readonly nqn: string;
  readonly epoch: string;
  /** Whether any publish context of the epoch allowed a format. */
  readonly mayFormat: boolean;
  /** The addresses where the volume is reached. */
  readonly addresses: readonly string[];
  readonly port: number;
  readonly connection: ConnectionSettings;
  /** The map through which the volume is used, see `DeviceMaps`; absent where its namespace is used directly. */
  readonly map?: MapKind;
  readonly kind: "block" | FilesystemType;
  readonly readOnly: boolean;
  readonly mountFlags: readonly string[];
  readonly stagingPath: string;
  /** The least size that the volume's namespace is known to have, an encryption header included. */
  readonly namespaceBytes: bigint;
}

/**
 * What is known of the volume's bytes. It outlives an unstage: the publish context says in the whole epoch that the volume
 * was never written.
 */
export interface Content {
  /** How far the encryption header came, of a volume with a `crypt`. */
  readonly header: MakingState;
  readonly filesystem: MakingState;
  /** Whether the root folder of a file system made here got its mode. */
  readonly rootOpened: boolean;
  /** The device on which a header or file system was begun; absent while nothing is unfinished. Its size stays that of then. */
  readonly begunOn?: StagedDevice;
  /** The device that was seen last, of a volume whose record ended with a failed stage: the next one has to compare it. */
  readonly seenOn?: StagedDevice;
  /** Set before the first mount of its file system, or the first bind of its device: from then on a blank device has lost data. */
  readonly used: boolean;
  /** UUID from blkid of the file system that was mounted last; absent for a newly made one. */
  readonly filesystemUuid?: string;
}

/** What was made of the volume on this node, and how far that came. The kernel shows what is left of it. */
export interface Here {
  /** The device through which the volume was used last; absent while none was connected and proven. */
  readonly device?: StagedDevice;
  /** Device number that was mounted last: a mount that it left behind may be removed. */
  readonly mountedAs?: string;
  /** Whether staging completed. */
  readonly staged: boolean;
  /** Set while it is mounted only to replay its log: such a mount, left by a crash, does not count as staged. */
  readonly replaying?: true;
  readonly published: readonly PublishedTarget[];
  /** Why its file system could not be grown to its device when it was staged last; absent where it fills the device. */
  readonly notGrown?: string;
  /**
   * For how long the target has not offered a volume that is to be unstaged; absent while it is offered or not to be
   * unstaged.
   */
  readonly missed?: FenceMemory;
}

/** How a volume's connection is made. Times are in seconds, and what is absent is left to the connector. */
export interface ConnectionSettings {
  readonly ctrlLossTmo?: number;
  readonly reconnectDelay?: number;
  readonly keepAliveTmo?: number;
  readonly nrIoQueues?: number;
  readonly fastIoFailTmo?: number;
  /** The parts of it that carry a checksum. A target that does not support it refuses; the kernel does not show it. @default {none} */
  readonly digests?: readonly Digest[];
}

/** The parts of a connection that carry a checksum: NVMe/TCP Transport Specification, "Digests". */
export type Digest = "header" | "data";

/** How far it came that something was made on a device. */
export type MakingState = "none" | "started" | "done";

/** The device that a volume was found as. A later read can compare it. */
export interface StagedDevice {
  readonly deviceNumber: string;
  /** NGUID or UUID in lower case hex, "" where the target gives none. */
  readonly uniqueId: string;
  readonly sizeBytes: bigint;
}

/** Where and how a staged volume is published. */
export interface PublishedTarget {
  readonly targetPath: string;
  readonly readOnly: boolean;
}

/** What is remembered of a volume that is to be unstaged, and that its target did not offer at the last read. */
export interface FenceMemory {
  /** When the last read began that did not offer it, in milliseconds since the Unix epoch. */
  readonly lastMissedMs: number;
  /** For how long successive reads have not offered it, in milliseconds. */
  readonly missedForMs: number;
  /** When an unstage was last requested, in milliseconds since the Unix epoch. */
  readonly askedMs: number;
}

/** The state of a volume of which nothing is known and nothing is here. */
export function newState(volumeId: string, intent: Intent): StagingState {
  return { volumeId, intent, content: nothingKnown, here: nothingHere };
}

const nothingKnown: Content = { header: "none", filesystem: "none", rootOpened: false, used: false };
const nothingHere: Here = { staged: false, published: [] };

/** The device that was seen of the volume before: what has begun on it must go on there. */
export function seenDevice({ content, here }: StagingState): StagedDevice | undefined {
  return content.begunOn ?? here.device ?? content.seenOn;
}

/** The staging state of a volume whose device has that unique id now. */
export function withUniqueId({ content, here, ...rest }: StagingState, uniqueId: string): StagingState {
  const { begunOn } = content;
  const { device } = here;
  return {
    ...rest,
    content: begunOn === undefined ? content : { ...content, begunOn: { ...begunOn, uniqueId } },
    here: device === undefined ? here : { ...here, device: { ...device, uniqueId } },
  };
}

/** The staging state with other facts of its content. */
export function withContent(stagingState: StagingState, change: Partial<Content>): StagingState {
  return { ...stagingState, content: { ...stagingState.content, ...change } };
}

/** The staging state with other facts of what is here. */
export function withHere(stagingState: StagingState, change: Partial<Here>): StagingState {
  return { ...stagingState, here: { ...stagingState.here, ...change } };
}
