import type { MapKind } from "./device_layer.ts";
import { usableBytes } from "./encryption.ts";
import { VolumeError } from "../errors.ts";
import type { FilesystemType } from "./capabilities.ts";

/** How far it came that something was made on a device, according to the node's state file. */
export type MakingState = "none" | "started" | "done";

/** What is remembered of a volume that is to be unstaged, and that its target did not offer at the last read. */
export interface FenceMemory {
  /** When the last read began that did not offer it, in milliseconds since the Unix epoch. */
  readonly lastMissedMs: number;
  /** For how long successive reads have not offered it, in milliseconds. */
  readonly missedForMs: number;
  /** When an unstage was last requested, in milliseconds since the Unix epoch. */
  readonly askedMs: number;
}

/** The parts of a connection that carry a checksum: NVMe/TCP Transport Specification, "Digests". */
export type Digest = "header" | "data";

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

/** Where and how a staged volume is published. */
export interface PublishedTarget {
  readonly targetPath: string;
  readonly readOnly: boolean;
}

/** The device that a volume was found as. A later read can compare it. */
export interface StagedDevice {
  readonly deviceNumber: string;
  /** NGUID or UUID in lower case hex, "" where the target gives none. */
  readonly uniqueId: string;
  readonly sizeBytes: bigint;
}

/**
 * A node's record of a volume. It is written and synced before the node connects, because an unstage gets no context,
 * and because nothing else shows how far mkfs came.
 */
export interface StagingState {
  readonly volumeId: string;
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
  /** The device through which the volume was used last; undefined while none was connected and proven. */
  readonly device: StagedDevice | undefined;
  /** The device on which a header or file system was begun; absent while nothing is unfinished. Its size stays that of then. */
  readonly begunOn?: StagedDevice;
  /** How far the encryption header came, of a volume with a `crypt`. */
  readonly header: MakingState;
  readonly filesystem: MakingState;
  /** Set before the first mount of its file system, or the first bind of its device: from then on a blank device has lost data. */
  readonly used: boolean;
  /** Device number that was mounted last: a mount that it left behind may be removed. */
  readonly mountedAs: string | undefined;
  /** UUID from blkid of the file system that was mounted last; absent for a newly made one. */
  readonly filesystemUuid?: string;
  /** Whether the root folder of a file system made here got its mode. */
  readonly rootOpened: boolean;
  /** Whether staging completed. */
  readonly staged: boolean;
  readonly published: readonly PublishedTarget[];
  /** Why its file system could not be grown to its device when it was staged last; absent where it fills the device. */
  readonly notGrown?: string;
  /** Set while it is mounted only to replay its log: such a mount, left by a crash, does not count as staged. */
  readonly replaying?: true;
  /**
   * For how long the target has not offered a volume that is to be unstaged; absent while it is offered or not to be
   * unstaged.
   */
  readonly missed?: FenceMemory;
}

const stagingStateVersion = 1;

/** Formats a state file. */
export function formatStagingState(stagingState: StagingState): string {
  return JSON.stringify(
    { version: stagingStateVersion, ...stagingState },
    (_key, value) => typeof value === "bigint" ? String(value) : value,
    2,
  ) + "\n";
}

/**
 * Parses a state file.
 *
 * @throws {VolumeError} precondition when it is damaged, of another version or about another volume: its content is
 *   never guessed
 */
export function parseStagingState(text: string, volumeId: string, path: string): StagingState {
  const fields = readObject(text);
  if (fields === undefined) throw damaged(path, "it is not JSON");
  if (fields.version !== stagingStateVersion) throw damaged(path, "its version is not known");
  const stagingState = readStagingState(fields);
  if (typeof stagingState === "string") throw damaged(path, `of its field ${stagingState}`);
  if (stagingState.volumeId !== volumeId) throw damaged(path, "it is about another volume");
  return stagingState;
}

/** The fields of a JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns the staging state, or the name of the first wrong field. */
function readStagingState(fields: Fields): StagingState | string {
  const wrong = Object.entries(checks).find(([name, check]) => !check(fields[name]));
  if (wrong !== undefined) return wrong[0];
  const { version: _version, missed, replaying, filesystemUuid, notGrown, ...known } = fields;
  // A damaged memory only costs time, because the fence starts its clock again. An error would stay until a person
  // repaired the file.
  const memory = parseFenceMemory(missed);
  return {
    ...known,
    ...(memory === undefined ? {} : { missed: memory }),
    ...(replaying === true ? { replaying } : {}),
    ...(isText(filesystemUuid) ? { filesystemUuid } : {}),
    ...(isText(notGrown) ? { notGrown } : {}),
    mountedAs: known.mountedAs,
    namespaceBytes: BigInt(known.namespaceBytes as string),
    device: readDevice(known.device),
    ...known.begunOn === undefined ? {} : { begunOn: readDevice(known.begunOn) },
  } as unknown as StagingState;
}

/** The device of a file, whose size JSON has as a text. */
export function readDevice(value: unknown): StagedDevice | undefined {
  if (value === undefined) return undefined;
  const device = value as Fields;
  return { ...device, sizeBytes: BigInt(device.sizeBytes as string) } as unknown as StagedDevice;
}

/** Whether a value of a file has the right form. */
export type Check = (value: unknown) => boolean;

/** Whether it is a text, and not an empty one. */
export const isText: Check = (value) => typeof value === "string" && value !== "";
/** Whether it is true or false. */
export const isFlag: Check = (value) => typeof value === "boolean";
const isSize: Check = (value) => typeof value === "string" && /^(?:0|[1-9][0-9]{0,18})$/.test(value);
const isDeviceNumber: Check = (value) => typeof value === "string" && /^[0-9]+:[0-9]+$/.test(value);

/** Whether a field is absent, or has the right form. */
export function isOptional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

function isOneOf(...values: readonly string[]): Check {
  return (value) => values.some((allowed) => allowed === value);
}

function isList(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

function isRecord(shape: Readonly<Record<string, Check>>): Check {
  return (value) =>
    typeof value === "object" && value !== null &&
    Object.entries(shape).every(([name, check]) => check((value as Fields)[name]));
}

/** Whether it is how far something came that is made on a device. */
export const isMakingState = isOneOf("none", "started", "done");

/** Whether it is a {@linkcode StagedDevice} as it is written. */
export const isStagedDevice = isRecord({
  deviceNumber: isDeviceNumber,
  uniqueId: (value) => typeof value === "string",
  sizeBytes: isSize,
});

const isSetting = isOptional(Number.isInteger);
const isConnection = isRecord({
  ctrlLossTmo: isSetting,
  reconnectDelay: isSetting,
  keepAliveTmo: isSetting,
  nrIoQueues: isSetting,
  fastIoFailTmo: isSetting,
  digests: isOptional(isList(isOneOf("header", "data"))),
});

const checks: Readonly<
  Record<Exclude<keyof StagingState, "missed" | "replaying" | "filesystemUuid" | "notGrown">, Check>
> = {
  volumeId: isText,
  nqn: isText,
  epoch: isText,
  mayFormat: isFlag,
  addresses: isList(isText),
  port: (value) => Number.isInteger(value) && Number(value) > 0 && Number(value) < 65536,
  connection: isConnection,
  map: isOptional(isOneOf("multipath", "crypt")),
  kind: isOneOf("block", "ext4", "xfs"),
  readOnly: isFlag,
  mountFlags: isList(isText),
  stagingPath: isText,
  namespaceBytes: isSize,
  device: isOptional(isStagedDevice),
  begunOn: isOptional(isStagedDevice),
  header: isMakingState,
  filesystem: isMakingState,
  used: isFlag,
  mountedAs: isOptional(isDeviceNumber),
  rootOpened: isFlag,
  staged: isFlag,
  published: isList(isRecord({ targetPath: isText, readOnly: isFlag })),
};

/** Reads a JSON object; undefined when the text is something else. */
export function readObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Fields : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function damaged(path: string, why: string): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot use the node's state of the volume because it is damaged (${why}): file=${path}; ` +
      "check that the volume is neither mounted nor connected here, then remove the file",
  );
}

/** The parts of a stage request that must match what is staged already. */
export type StagingIntent = Pick<
  StagingState,
  "kind" | "readOnly" | "mountFlags" | "stagingPath" | "connection" | "map"
>;

/** The first difference between a staged volume and a request; undefined when it satisfies the request. */
export function stagingDifference(stagingState: StagingState, intent: StagingIntent): string | undefined {
  if (stagingState.kind !== intent.kind) return `staged=${stagingState.kind} asked=${intent.kind}`;
  if (stagingState.readOnly !== intent.readOnly) {
    return `staged readonly=${stagingState.readOnly} asked readonly=${intent.readOnly}`;
  }
  if (stagingState.stagingPath !== intent.stagingPath) return `staged at=${stagingState.stagingPath}`;
  const [isEncrypted, wantsEncrypted] = [stagingState.map === "crypt", intent.map === "crypt"];
  if (isEncrypted !== wantsEncrypted) {
    return `staged encrypted=${isEncrypted} asked encrypted=${wantsEncrypted}`;
  }
  const flags = (list: readonly string[] = []) => list.toSorted().join(",");
  const [staged, asked] = [flags(stagingState.connection.digests), flags(intent.connection.digests)];
  if (staged !== asked) return `staged digests=${staged || "none"} asked digests=${asked || "none"}`;
  if (flags(stagingState.mountFlags) !== flags(intent.mountFlags)) return "the mount flags differ";
  return undefined;
}

/** The least size of the device through which the volume is used. */
export function usedBytes({ namespaceBytes, map }: Pick<StagingState, "namespaceBytes" | "map">): bigint {
  return usableBytes(namespaceBytes, map === "crypt");
}

/** The device that was seen of the volume before: what has begun on it must go on there. */
export function seenDevice({ begunOn, device }: StagingState): StagedDevice | undefined {
  return begunOn ?? device;
}

/** The staging state of a volume whose device has that unique id now. */
export function withUniqueId(stagingState: StagingState, uniqueId: string): StagingState {
  const { device, begunOn } = stagingState;
  return {
    ...stagingState,
    device: device && { ...device, uniqueId },
    ...begunOn === undefined ? {} : { begunOn: { ...begunOn, uniqueId } },
  };
}

/** The staging state with that target published, replacing an earlier entry. */
export function withPublished(stagingState: StagingState, target: PublishedTarget): StagingState {
  return {
    ...stagingState,
    published: [...withoutPublished(stagingState, target.targetPath).published, target],
  };
}

/** The staging state without that target. */
export function withoutPublished(stagingState: StagingState, targetPath: string): StagingState {
  return {
    ...stagingState,
    published: stagingState.published.filter((other) => other.targetPath !== targetPath),
  };
}

/** The staging state with that memory of missed reads, or with none. */
export function withMissed(stagingState: StagingState, memory: FenceMemory | undefined): StagingState {
  const { missed: _missed, ...rest } = stagingState;
  return memory === undefined ? rest : { ...rest, missed: memory };
}

/** Whether every use of the device on this node is read-only: a read-only bind of a device does not stop writes. */
export function wantsReadOnlyDevice(stagingState: StagingState): boolean {
  if (stagingState.readOnly) return true;
  return stagingState.kind === "block" && stagingState.published.length > 0 &&
    stagingState.published.every((target) => target.readOnly);
}

/** Parses a stored memory of missed reads; undefined, which starts the clock again, when it has another form. */
export function parseFenceMemory(value: unknown): FenceMemory | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { lastMissedMs, missedForMs, askedMs } = value as Readonly<Record<string, unknown>>;
  const isTime = (time: unknown): time is number =>
    typeof time === "number" && Number.isFinite(time) && time >= 0;
  if (!isTime(lastMissedMs) || !isTime(missedForMs) || !isTime(askedMs)) return undefined;
  return { lastMissedMs, missedForMs, askedMs };
}
