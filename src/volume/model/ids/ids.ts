import { digest } from "../digest.ts";
import { VolumeError } from "../../errors.ts";

/** Longest name that CreateVolume accepts, in bytes of UTF-8 (CSI specification, size limits). */
export const maxNameBytes = 128;
/** Longest node id, in bytes. One node id always fits into a record, see `maxCommentBytes`. */
export const maxNodeIdBytes = 64;

const ownSlot = /^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
const legacySlot = /^pvc-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const provisionerName = /^pvc-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/;
const nodeIdForm = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/;

/**
 * The volume id, which is the router's slot, for a CSI volume name.
 *
 * `pvc-<uuid>` keeps its first 28 hex digits so that a person recognises it; any other name becomes 28 digits of its
 * SHA-256. Two names may share an id: the record's name digest distinguishes them.
 *
 * @throws {VolumeError} invalid when the name is empty, over 128 bytes or has control characters
 */
export function volumeIdFor(name: string): string {
  assertName(name);
  const uuid = provisionerName.exec(name)?.[1];
  return "pvc-" + (uuid === undefined ? digest(name, 28) : uuid.replaceAll("-", "").slice(0, 28));
}

/** Twelve hex digits that represent the whole name in the record. */
export function nameDigest(name: string): string {
  return digest(name, 12);
}

/**
 * Checks the CSI name of a volume or a snapshot.
 *
 * @throws {VolumeError} invalid when it is empty, over 128 bytes or has control characters
 */
export function assertName(name: string): void {
  if (name === "") throw new VolumeError("invalid", "Cannot use the name because it is empty");
  const bytes = new TextEncoder().encode(name).length;
  if (bytes > maxNameBytes) {
    throw new VolumeError(
      "invalid",
      `Cannot use the name because it is too long: bytes=${bytes} most=${maxNameBytes}`,
    );
  }
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f]/.test(name)) {
    throw new VolumeError("invalid", "Cannot use the name because it contains control characters");
  }
}

/**
 * Checks the form of a volume id that came from outside.
 *
 * Ids are slots of at most 32 characters of `[a-z0-9-]`; the 40-character ids of the legacy Go driver are accepted too,
 * though this driver makes none. A snapshot id never has this form.
 *
 * @throws {VolumeError} invalid when it has another form
 */
export function assertVolumeId(id: string): void {
  if (id === "") throw new VolumeError("invalid", "Cannot use the volume id because it is empty");
  if (isVolumeId(id)) return;
  throw new VolumeError(
    "invalid",
    "Cannot use the volume id because it is not in this driver's form: " +
      `volume=${JSON.stringify(id.slice(0, 64))}; expected at most 32 characters of a-z, 0-9 and -`,
  );
}

/** Whether the text has the form of a volume id, see {@linkcode assertVolumeId}. */
export function isVolumeId(id: string): boolean {
  return ownSlot.test(id) || legacySlot.test(id);
}

/** Whether the text has the form of the legacy Go driver's volume ids. */
export function isLegacyId(id: string): boolean {
  return legacySlot.test(id);
}

/**
 * Checks the form of a node id.
 *
 * @throws {VolumeError} invalid when it is empty, over 64 bytes or not made of `[A-Za-z0-9.-]`
 */
export function assertNodeId(nodeId: string): void {
  if (nodeId.length <= maxNodeIdBytes && nodeIdForm.test(nodeId)) return;
  throw new VolumeError(
    "invalid",
    `Cannot use the node id: node=${JSON.stringify(nodeId.slice(0, 80))}; ` +
      `expected 1 to ${maxNodeIdBytes} characters of A-Z, a-z, 0-9, "." and "-"`,
  );
}

/** The parent folder of a path. */
export function parentFolder(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** The pool that a path lies on: its first segment, without slashes. */
export function poolOf(path: string): string {
  return path.split("/", 2)[1] ?? "";
}
