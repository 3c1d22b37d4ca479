import { VolumeError } from "../../errors.ts";
import type { Content, FenceMemory, StagedDevice, StagingState } from "./state.ts";

const version = 1;

/** What is known of a volume that was unstaged, in one epoch: a file of `known/`. */
export interface KnownContent {
  readonly volumeId: string;
  readonly epoch: string;
  /** When it was written, in milliseconds since the Unix epoch. */
  readonly keptMs: number;
  readonly content: Content;
}

/** Formats a state file. */
export function formatStagingState(stagingState: StagingState): string {
  return format(stagingState);
}

/** Formats a file of what is known. */
export function formatKnown(known: KnownContent): string {
  return format(known);
}

function format(fields: object): string {
  const text = (_key: string, value: unknown) => typeof value === "bigint" ? String(value) : value;
  return JSON.stringify({ version, ...fields }, text, 2) + "\n";
}

/**
 * Parses a state file. Fields that it does not know stay.
 *
 * @throws {VolumeError} precondition when it is damaged, of another version or about another volume: its content is
 *   never guessed
 */
export function parseStagingState(text: string, volumeId: string, path: string): StagingState {
  const fields = parse(text, { volumeId: isText, intent, content, here }, volumeId);
  if (typeof fields === "string") {
    throw new VolumeError(
      "precondition",
      `Cannot use the node's state of the volume because it is damaged (${fields}): file=${path}; ` +
        "check that the volume is neither mounted nor connected here, then remove the file",
    );
  }
  return {
    ...fields,
    intent: withSize(fields.intent as Fields, "namespaceBytes"),
    content: readContent(fields.content as Fields),
    here: readHere(fields.here as Fields),
  } as unknown as StagingState;
}

/**
 * Parses a file of what is known. Fields that it does not know stay.
 *
 * @throws {VolumeError} precondition when it is damaged, of another version or about another volume
 */
export function parseKnown(text: string, volumeId: string, path: string): KnownContent {
  const fields = parse(text, { volumeId: isText, epoch: isText, keptMs: Number.isFinite, content }, volumeId);
  if (typeof fields === "string") {
    throw new VolumeError(
      "precondition",
      `Cannot determine whether the volume was used here because what the node knows of it is damaged: volume=${volumeId} ` +
        `file=${path}; find out whether it holds data (rds-csi attach), then remove the file`,
    );
  }
  return { ...fields, content: readContent(fields.content as Fields) } as unknown as KnownContent;
}

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, Check | Readonly<Record<string, Check>>>>;

/** The fields of a file but its version, or what is wrong with them. */
function parse(text: string, shape: Shape, volumeId: string): Fields | string {
  const fields = readObject(text);
  if (fields === undefined) return "it is not JSON";
  const { version: found, ...rest } = fields;
  if (found !== version) return "its version is not known";
  for (const [name, check] of Object.entries(shape)) {
    if (typeof check === "function") {
      if (!check(rest[name])) return `of its field ${name}`;
      continue;
    }
    const part = rest[name];
    if (!isObject(part)) return `of its part ${name}`;
    const wrong = Object.entries(check).find(([field, isRight]) => !isRight(part[field]));
    if (wrong !== undefined) return `of its field ${name}.${wrong[0]}`;
  }
  return rest.volumeId === volumeId ? rest : "it is about another volume";
}

function readObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON has sizes as texts. */
function withSize<Name extends string>(fields: Fields, name: Name): Fields {
  return { ...fields, [name]: BigInt(fields[name] as string) };
}

function readContent({ begunOn, seenOn, filesystemUuid, ...fields }: Fields): Fields {
  return {
    ...fields,
    ...begunOn === undefined ? {} : { begunOn: withSize(begunOn as Fields, "sizeBytes") },
    ...seenOn === undefined ? {} : { seenOn: withSize(seenOn as Fields, "sizeBytes") },
    ...isText(filesystemUuid) ? { filesystemUuid } : {},
  };
}

function readHere({ device, replaying, notGrown, missed, ...fields }: Fields): Fields {
  // A damaged memory only costs time, because the fence starts its clock again. An error would stay until a person
  // repaired the file.
  const memory = parseFenceMemory(missed);
  return {
    ...device === undefined ? {} : { device: withSize(device as Fields, "sizeBytes") },
    ...fields,
    ...replaying === true ? { replaying } : {},
    ...isText(notGrown) ? { notGrown } : {},
    ...memory === undefined ? {} : { missed: memory },
  };
}

/** Parses a stored memory of missed reads; undefined, which starts the clock again, when it has another form. */
function parseFenceMemory(value: unknown): FenceMemory | undefined {
  if (!isObject(value)) return undefined;
  const { lastMissedMs, missedForMs, askedMs } = value;
  const isTime = (time: unknown): time is number =>
    typeof time === "number" && Number.isFinite(time) && time >= 0;
  if (!isTime(lastMissedMs) || !isTime(missedForMs) || !isTime(askedMs)) return undefined;
  return { lastMissedMs, missedForMs, askedMs };
}

const isText: Check = (value) => typeof value === "string" && value !== "";
const isFlag: Check = (value) => typeof value === "boolean";
const isSize: Check = (value) => typeof value === "string" && /^(?:0|[1-9][0-9]{0,18})$/.test(value);
const isDeviceNumber: Check = (value) => typeof value === "string" && /^[0-9]+:[0-9]+$/.test(value);

function isOptional(check: Check): Check {
  return (value) => value === undefined || check(value);
}

function isOneOf(...values: readonly string[]): Check {
  return (value) => values.some((allowed) => allowed === value);
}

function isList(check: Check): Check {
  return (value) => Array.isArray(value) && value.every(check);
}

function isRecord(shape: Readonly<Record<string, Check>>): Check {
  return (value) => isObject(value) && Object.entries(shape).every(([name, check]) => check(value[name]));
}

const isMakingState = isOneOf("none", "started", "done");

const isDevice = isRecord(
  {
    deviceNumber: isDeviceNumber,
    uniqueId: (value) => typeof value === "string",
    sizeBytes: isSize,
  } satisfies Record<keyof StagedDevice, Check>,
);

const isSetting = isOptional(Number.isInteger);
const isConnection = isRecord({
  ctrlLossTmo: isSetting,
  reconnectDelay: isSetting,
  keepAliveTmo: isSetting,
  nrIoQueues: isSetting,
  fastIoFailTmo: isSetting,
  digests: isOptional(isList(isOneOf("header", "data"))),
});

const intent = {
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
} satisfies Record<keyof StagingState["intent"], Check>;

const content = {
  header: isMakingState,
  filesystem: isMakingState,
  rootOpened: isFlag,
  begunOn: isOptional(isDevice),
  seenOn: isOptional(isDevice),
  used: isFlag,
} satisfies Record<Exclude<keyof Content, "filesystemUuid">, Check>;

const here = {
  device: isOptional(isDevice),
  mountedAs: isOptional(isDeviceNumber),
  staged: isFlag,
  published: isList(isRecord({ targetPath: isText, readOnly: isFlag })),
} satisfies Record<Exclude<keyof StagingState["here"], "replaying" | "notGrown" | "missed">, Check>;
