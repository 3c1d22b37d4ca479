import { VolumeError } from "../errors.ts";
import type { FilesystemType } from "./capabilities.ts";

/** How far making a file system came, as the node's state file says. */
export type MkfsState = "none" | "started" | "done";

/** What is remembered of a volume that is to be unstaged, and that its target did not offer at the last look. */
export interface FenceMemory {
  /** When the last read began that lacked it, in milliseconds since the Unix epoch. */
  readonly lastMissedMs: number;
  /** For how long successive reads have lacked it, in milliseconds. */
  readonly missedForMs: number;
  /** When it was last asked to be unstaged, in milliseconds since the Unix epoch; earlier versions did not keep that. */
  readonly askedMs?: number;
}

/** What of a connection carries a checksum: NVMe/TCP Transport Specification, "Digests". */
export type Digest = "header" | "data";

/** What a volume's connection was made with, so that it can be made again: as in a StorageClass, in seconds. */
export interface LayerSettings {
  readonly ctrlLossTmo?: number;
  readonly reconnectDelay?: number;
  readonly keepAliveTmo?: number;
  readonly nrIoQueues?: number;
  readonly fastIoFailTmo?: number;
}

/** Where and how a staged volume is published. */
export interface PublishedTarget {
  readonly targetPath: string;
  readonly readOnly: boolean;
}

/** The device that a volume was found as, so that a later look can tell whether it is still that one. */
export interface StagedDevice {
  readonly deviceNumber: string;
  /** NGUID or UUID in lower case hex, "" where the target gives none. */
  readonly uniqueId: string;
  readonly sizeBytes: bigint;
}

/**
 * What a node remembers of a volume: written and synced before it connects, because unstaging gets no context, and
 * because nobody else knows how far making a file system came.
 */
export interface StagingState {
  readonly volumeId: string;
  readonly nqn: string;
  readonly epoch: string;
  /** Where it is reached. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** What of its connection carries a checksum; absent where nothing does. The kernel shows it nowhere. */
  readonly digests?: readonly Digest[];
  readonly kind: "block" | FilesystemType;
  readonly readOnly: boolean;
  readonly mountFlags: readonly string[];
  readonly stagingPath: string;
  /** The size that the volume is known to have at least. */
  readonly sizeBytes: bigint;
  /** The device last found; its size and unique id are those that mkfs was started on, if it was. */
  readonly device: StagedDevice | undefined;
  readonly mkfs: MkfsState;
  /** Set before the first mount. */
  readonly everMounted: boolean;
  /** Device number that was mounted last: what it has left behind may be cleared away. */
  readonly mountedAs: string | undefined;
  /** Of the file system that was mounted last, as blkid tells it; absent for one that was only just made. */
  readonly filesystemUuid?: string;
  /** Whether the root folder of a file system made here got its mode. */
  readonly rootOpened: boolean;
  /** That it is used by a map on its device, see `DeviceMaps`; absent where it is used as it is. */
  readonly layer?: LayerSettings;
  /** Whether staging went through to its end. */
  readonly staged: boolean;
  readonly published: readonly PublishedTarget[];
  /** Set while it is mounted only to replay its log: such a mount, left by a crash, is no staged volume. */
  readonly replaying?: true;
  /** For how long its target lacks it that is to be unstaged; absent while either is not so. */
  readonly missed?: FenceMemory;
}

const stagingStateVersion = 1;

/** The text of a state file. */
export function formatStagingState(stagingState: StagingState): string {
  return JSON.stringify(
    { version: stagingStateVersion, ...stagingState },
    (_key, value) => typeof value === "bigint" ? String(value) : value,
    2,
  ) + "\n";
}

/**
 * Reads a state file.
 *
 * @throws {VolumeError} precondition when it is damaged, of another version or about another volume: what it says is
 * never guessed at
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

type Fields = Readonly<Record<string, unknown>>;

/** The staging state, or the name of the first field that is wrong. */
function readStagingState(fields: Fields): StagingState | string {
  const wrong = Object.entries(checks).find(([name, check]) => !check(fields[name]));
  if (wrong !== undefined) return wrong[0];
  const { version: _version, missed, replaying, filesystemUuid, ...known } = fields;
  const device = known.device as (Fields | undefined);
  // What is damaged here costs only time: a look more, and nobody would mend it.
  const memory = parseFenceMemory(missed);
  return {
    ...known,
    ...(memory === undefined ? {} : { missed: memory }),
    ...(replaying === true ? { replaying } : {}),
    ...(isText(filesystemUuid) ? { filesystemUuid } : {}),
    mountedAs: known.mountedAs,
    sizeBytes: BigInt(known.sizeBytes as string),
    device: device === undefined ? undefined : { ...device, sizeBytes: BigInt(device.sizeBytes as string) },
  } as unknown as StagingState;
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string" && value !== "";
const isFlag: Check = (value) => typeof value === "boolean";
const isSize: Check = (value) => typeof value === "string" && /^(?:0|[1-9][0-9]{0,18})$/.test(value);
const isDeviceNumber: Check = (value) => typeof value === "string" && /^[0-9]+:[0-9]+$/.test(value);

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

const isDevice = isRecord({
  deviceNumber: isDeviceNumber,
  uniqueId: (value) => typeof value === "string",
  sizeBytes: isSize,
});

const isSetting: Check = (value) => value === undefined || Number.isInteger(value);
const isLayer = isRecord({
  ctrlLossTmo: isSetting,
  reconnectDelay: isSetting,
  keepAliveTmo: isSetting,
  nrIoQueues: isSetting,
  fastIoFailTmo: isSetting,
});

const checks: Readonly<
  Record<Exclude<keyof StagingState, "missed" | "replaying" | "filesystemUuid">, Check>
> = {
  volumeId: isText,
  nqn: isText,
  epoch: isText,
  addresses: isList(isText),
  port: (value) => Number.isInteger(value) && Number(value) > 0 && Number(value) < 65536,
  digests: (value) => value === undefined || isList(isOneOf("header", "data"))(value),
  kind: isOneOf("block", "ext4", "xfs"),
  readOnly: isFlag,
  mountFlags: isList(isText),
  stagingPath: isText,
  sizeBytes: isSize,
  device: (value) => value === undefined || isDevice(value),
  mkfs: isOneOf("none", "started", "done"),
  everMounted: isFlag,
  mountedAs: (value) => value === undefined || isDeviceNumber(value),
  rootOpened: isFlag,
  layer: (value) => value === undefined || isLayer(value),
  staged: isFlag,
  published: isList(isRecord({ targetPath: isText, readOnly: isFlag })),
};

function readObject(text: string): Fields | undefined {
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

/** What a stage request says that has to agree with what is staged already. */
export type StagingIntent = Pick<
  StagingState,
  "kind" | "readOnly" | "mountFlags" | "stagingPath" | "digests"
>;

/** The first way in which a staged volume differs from what is asked for now; undefined when it answers the request. */
export function stagingDifference(stagingState: StagingState, intent: StagingIntent): string | undefined {
  if (stagingState.kind !== intent.kind) return `staged=${stagingState.kind} asked=${intent.kind}`;
  if (stagingState.readOnly !== intent.readOnly) {
    return `staged readonly=${stagingState.readOnly} asked readonly=${intent.readOnly}`;
  }
  if (stagingState.stagingPath !== intent.stagingPath) return `staged at=${stagingState.stagingPath}`;
  const flags = (list: readonly string[] = []) => list.toSorted().join(",");
  const [staged, asked] = [flags(stagingState.digests), flags(intent.digests)];
  if (staged !== asked) return `staged digests=${staged || "none"} asked digests=${asked || "none"}`;
  if (flags(stagingState.mountFlags) !== flags(intent.mountFlags)) return "the mount flags differ";
  return undefined;
}

/**
 * Whether a file system was begun here and not handed over yet. Nobody else knows that: without it, what lies on the device
 * would be taken for data, and its root would stay closed.
 */
export function isUnfinished({ mkfs, rootOpened }: StagingState): boolean {
  return mkfs === "started" || (mkfs === "done" && !rootOpened);
}

/**
 * The staging state for another way of staging what was begun: as wanted now, with all that is known of the file system. That ends
 * where the device is handed out as it is: what lies on it from then on is data, and no unfinished file system.
 */
export function beginAnew(
  { device, mkfs, everMounted, mountedAs, rootOpened, filesystemUuid }: StagingState,
  wanted: StagingState,
): StagingState {
  if (wanted.kind === "block") return wanted;
  const filesystem = filesystemUuid === undefined ? {} : { filesystemUuid };
  return { ...wanted, device, mkfs, everMounted, mountedAs, rootOpened, ...filesystem };
}

/** The staging state with that target among the published ones, in place of an earlier entry. */
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

/** The staging state with that memory of its target's lacking it, or with none. */
export function withMissed(stagingState: StagingState, memory: FenceMemory | undefined): StagingState {
  const { missed: _missed, ...rest } = stagingState;
  return memory === undefined ? rest : { ...rest, missed: memory };
}

/** Whether every use of the device here is a read-only one: a read-only bind of a device does not stop writes. */
export function wantsReadOnlyDevice(stagingState: StagingState): boolean {
  if (stagingState.readOnly) return true;
  return stagingState.kind === "block" && stagingState.published.length > 0 &&
    stagingState.published.every((target) => target.readOnly);
}

/** Reads a memory that was kept in a file; undefined, which starts the clock anew, when it is anything else. */
export function parseFenceMemory(value: unknown): FenceMemory | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { lastMissedMs, missedForMs, askedMs } = value as Readonly<Record<string, unknown>>;
  const isTime = (time: unknown): time is number =>
    typeof time === "number" && Number.isFinite(time) && time >= 0;
  if (!isTime(lastMissedMs) || !isTime(missedForMs)) return undefined;
  return { lastMissedMs, missedForMs, ...(isTime(askedMs) ? { askedMs } : {}) };
}
