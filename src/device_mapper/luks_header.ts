import { createHash } from "node:crypto";
import { type LuksMetadata, parseMetadata, refusedHeader } from "./luks_metadata.ts";

/** What each of the two copies of a header takes: this driver's, and cryptsetup's by default. */
export const copyBytes = 16_384;

/** Where the copies begin, the primary one first. */
export const copyOffsets = [0, copyBytes] as const;

/** A header: LUKS2 On-Disk Format Specification 1.1, section 2. */
export interface LuksHeader {
  /** Grows with each change: of two copies the later one counts. */
  readonly seqid: bigint;
  /** Any bytes, as a character each: a person may have chosen it. */
  readonly label: string;
  readonly uuid: string;
  /** What makes the checksum of each copy another one. */
  readonly salts: readonly [Uint8Array, Uint8Array];
  readonly metadata: LuksMetadata;
  /** The copy that is to be overwritten first: a damaged or earlier one, else the primary one. */
  readonly lesser: CopyIndex;
  /** Whether the other copy is undamaged and as late: one that an interrupted write has left may still have an earlier key. */
  readonly isInBoth: boolean;
}

/** The primary copy, or the secondary one. */
export type CopyIndex = 0 | 1;

/** The binary part of a copy that is undamaged, and the text behind it. */
interface Copy extends Pick<LuksHeader, "seqid" | "label" | "uuid"> {
  readonly salt: Uint8Array;
  readonly json: Uint8Array;
}

const magics = ["LUKS\xba\xbe", "SKUL\xba\xbe"] as const;
const version = 2;
/** What the JSON text begins behind. */
const binaryBytes = 4096;
/** Offset and length of each field of the binary part. */
const at = {
  magic: [0, 6],
  version: [6, 2],
  size: [8, 8],
  seqid: [16, 8],
  label: [24, 48],
  algorithm: [72, 32],
  salt: [104, 64],
  uuid: [168, 40],
  subsystem: [208, 48],
  offset: [256, 8],
  checksum: [448, 64],
} as const;

const checksumName = "sha256";

/**
 * Parses the beginning of a device: of the undamaged copies the later one, as cryptsetup does, and compares it with what
 * this driver makes.
 *
 * @param bytes at least both copies
 * @param device for messages
 * @throws {VolumeError} precondition naming the field when no copy is undamaged, or the later one differs
 */
export function parseHeader(bytes: Uint8Array, device: string): LuksHeader {
  const copies = [parseCopy(bytes, 0), parseCopy(bytes, 1)] as const;
  const [primary, secondary] = copies.map((copy) => typeof copy === "string" ? undefined : copy);
  const later = secondary !== undefined && (primary === undefined || secondary.seqid > primary.seqid)
    ? secondary
    : primary;
  if (later === undefined) {
    throw refusedHeader(
      device,
      "header",
      `primary ${copies[0]}, secondary ${copies[1]}`,
      "an undamaged copy",
    );
  }
  const { seqid, label, uuid, json } = later;
  const salts = [primary?.salt ?? later.salt, secondary?.salt ?? later.salt] as const;
  const lesser = later === primary && secondary?.seqid !== seqid ? 1 : 0;
  const isInBoth = primary?.seqid === secondary?.seqid;
  return { seqid, label, uuid, salts, lesser, isInBoth, metadata: parseMetadata({ uuid, json }, device) };
}

/** What is wrong with a copy where it is none, or damaged. */
function parseCopy(bytes: Uint8Array, index: CopyIndex): Copy | string {
  const copy = bytes.subarray(copyOffsets[index], copyOffsets[index] + copyBytes);
  if (copy.length < copyBytes) return "cut short";
  if (text(copy, at.magic) !== magics[index]) return "without its magic number";
  if (number(copy, at.version) !== BigInt(version)) return `of version ${number(copy, at.version)}`;
  if (number(copy, at.size) !== BigInt(copyBytes)) return `of ${number(copy, at.size)} bytes`;
  if (number(copy, at.offset) !== BigInt(copyOffsets[index])) return `for offset ${number(copy, at.offset)}`;
  if (text(copy, at.algorithm) !== checksumName) return "with another checksum than sha256";
  const checksum = field(copy, at.checksum).subarray(0, 32);
  if (Buffer.compare(checksumOf(copy), checksum) !== 0) return "damaged: its checksum is wrong";
  const json = copy.subarray(binaryBytes);
  const end = json.indexOf(0);
  return {
    seqid: number(copy, at.seqid),
    label: text(copy, at.label),
    uuid: text(copy, at.uuid),
    salt: field(copy, at.salt).slice(),
    json: end < 0 ? json : json.subarray(0, end),
  };
}

/** What is written of a header. */
export type FormattedHeader = Omit<LuksHeader, "lesser" | "isInBoth">;

/**
 * Both copies of a header as this driver writes them, made anew from what was parsed: whatever else was in the bytes,
 * such as a name that is there twice, no other program can read in another way.
 *
 * @throws {RangeError} when the metadata is longer than its area
 */
export function formatHeader(header: FormattedHeader): Uint8Array {
  const bytes = new Uint8Array(2 * copyBytes);
  copyOffsets.forEach((offset, index) => bytes.set(formatCopy(header, index as CopyIndex), offset));
  return bytes;
}

function formatCopy({ seqid, label, uuid, salts, metadata }: FormattedHeader, index: CopyIndex): Uint8Array {
  const copy = new Uint8Array(copyBytes);
  const put = ([offset]: readonly [number, number], value: Uint8Array) => copy.set(value, offset);
  put(at.magic, latin1(magics[index]));
  put(at.version, bigEndian(BigInt(version), 2));
  put(at.size, bigEndian(BigInt(copyBytes), 8));
  put(at.seqid, bigEndian(seqid, 8));
  put(at.label, latin1(label));
  put(at.algorithm, latin1(checksumName));
  put(at.salt, salts[index]);
  put(at.uuid, latin1(uuid));
  put(at.offset, bigEndian(BigInt(copyOffsets[index]), 8));
  const json = latin1(JSON.stringify(metadata));
  if (json.length >= copyBytes - binaryBytes) throw new RangeError("The metadata of a header is too long");
  copy.set(json, binaryBytes);
  put(at.checksum, checksumOf(copy));
  return copy;
}

/** Over the whole copy, with zeros in place of the checksum itself. */
function checksumOf(copy: Uint8Array): Uint8Array {
  const [offset, length] = at.checksum;
  return createHash(checksumName)
    .update(copy.subarray(0, offset))
    .update(new Uint8Array(length))
    .update(copy.subarray(offset + length))
    .digest();
}

function field(copy: Uint8Array, [offset, length]: readonly [number, number]): Uint8Array {
  return copy.subarray(offset, offset + length);
}

/** Byte by byte, to the first zero byte. */
function text(copy: Uint8Array, place: readonly [number, number]): string {
  return String.fromCharCode(...field(copy, place)).split("\0", 1)[0]!;
}

function number(copy: Uint8Array, place: readonly [number, number]): bigint {
  return field(copy, place).reduce((value, byte) => value << 8n | BigInt(byte), 0n);
}

function bigEndian(value: bigint, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => Number(value >> BigInt(8 * (length - 1 - index)) & 255n));
}

/** The inverse of {@linkcode text}. */
function latin1(value: string): Uint8Array {
  return Uint8Array.from(value, (letter) => letter.charCodeAt(0));
}
