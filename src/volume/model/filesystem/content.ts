import { VolumeError } from "../../errors.ts";
import {
  type Check,
  isFlag,
  isMakingState,
  isOptional,
  isStagedDevice,
  isText,
  type MakingState,
  readDevice,
  readObject,
  type StagedDevice,
  type StagingState,
} from "../staging_state.ts";

/**
 * What a node knows of what lies on a volume, in one epoch. It outlives an unstage: the publish context says in the whole
 * epoch that the volume was never written.
 */
export interface Content {
  readonly volumeId: string;
  readonly epoch: string;
  /** How far the encryption header came, of an encrypted volume. */
  readonly header: MakingState;
  readonly filesystem: MakingState;
  /** Whether the root folder of a file system made here got its mode. */
  readonly rootOpened: boolean;
  /** The device on which a header or file system was begun; absent once it is finished. */
  readonly begunOn?: StagedDevice;
  /** Set before the first mount or bind: from then on a blank device has lost data. */
  readonly used: boolean;
}

/** The content of a file of what is known, with the time at which it was written, in milliseconds since the Unix epoch. */
export interface KeptContent extends Content {
  readonly keptMs: number;
}

/** What a state file knows of what lies on its volume. */
export function contentOf(stagingState: StagingState): Content {
  const { volumeId, epoch, header, filesystem, rootOpened, begunOn, used } = stagingState;
  const begun = begunOn === undefined ? {} : { begunOn };
  return { volumeId, epoch, header, filesystem, rootOpened, ...begun, used };
}

/**
 * Whether the next stage of the epoch must know it: something was begun, made or used, and only this shows that. Where the
 * context forbids a format, nothing more is needed.
 */
export function isToBeKept({ mayFormat, used, filesystem, header }: StagingState): boolean {
  return mayFormat && (used || filesystem !== "none" || header !== "none");
}

/**
 * The wanted state with what is known of what lies on the volume. Where the device is handed out raw, the knowledge of the
 * file system ends: from then on its content is data, and no unfinished file system. That it was used stays.
 */
export function withContent(wanted: StagingState, content: Content): StagingState {
  const { filesystem, rootOpened, begunOn, used } = content;
  const header = wanted.map === "crypt" ? content.header : "none";
  const isUnfinished = header === "started" || (wanted.kind !== "block" && filesystem === "started");
  const begun = begunOn === undefined || !isUnfinished ? {} : { begunOn };
  const known = { ...wanted, header, ...begun, used };
  return wanted.kind === "block" ? known : { ...known, filesystem, rootOpened };
}

/**
 * The staging state for another kind of staging of a volume of which only the record is left: the wanted state, with all
 * that is known of the device and of what lies on it.
 */
export function beginAnew(stagingState: StagingState, wanted: StagingState): StagingState {
  const { device, mountedAs, filesystemUuid } = stagingState;
  const [earlier, now] = [stagingState.namespaceBytes, wanted.namespaceBytes];
  const namespaceBytes = earlier > now ? earlier : now;
  const known = withContent({ ...wanted, namespaceBytes }, contentOf(stagingState));
  const anew = { ...known, device, mayFormat: isAllowed(stagingState, wanted) };
  if (wanted.kind === "block") return anew;
  return { ...anew, mountedAs, ...filesystemUuid === undefined ? {} : { filesystemUuid } };
}

/** Whether a format was allowed in one of two states of an epoch: what was allowed once may have been done. */
export function isAllowed(one: StagingState, other: StagingState): boolean {
  return one.mayFormat || other.mayFormat;
}

const contentVersion = 1;

/** Formats a file of what is known. */
export function formatContent(content: KeptContent): string {
  return JSON.stringify(
    { version: contentVersion, ...content },
    (_key, value) => typeof value === "bigint" ? String(value) : value,
    2,
  ) + "\n";
}

const checks: Readonly<Record<keyof KeptContent, Check>> = {
  volumeId: isText,
  epoch: isText,
  header: isMakingState,
  filesystem: isMakingState,
  rootOpened: isFlag,
  begunOn: isOptional(isStagedDevice),
  used: isFlag,
  keptMs: (value) => typeof value === "number" && Number.isFinite(value),
};

/**
 * Parses a file of what is known.
 *
 * @throws {VolumeError} precondition when it is damaged, of another version or about another volume
 */
export function parseContent(text: string, volumeId: string, path: string): KeptContent {
  const { version, ...fields } = readObject(text) ?? {};
  const wrong = Object.entries(checks).find(([name, check]) => !check(fields[name]));
  if (version !== contentVersion || wrong !== undefined || fields.volumeId !== volumeId) {
    throw new VolumeError(
      "precondition",
      `Cannot tell whether the volume was used here because what the node knows of it is damaged: volume=${volumeId} ` +
        `file=${path}; find out whether it holds data (rds-csi attach), then remove the file`,
    );
  }
  const begunOn = readDevice(fields.begunOn);
  return { ...fields, ...begunOn === undefined ? {} : { begunOn } } as unknown as KeptContent;
}
