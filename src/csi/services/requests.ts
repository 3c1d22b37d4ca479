import { Buffer } from "node:buffer";
import type { RequestedCapability } from "../../volume/model/requested_capabilities.ts";
import { isLegacySnapshotId, noData } from "../../volume/model/snapshots/legacy_snapshots.ts";
import { VolumeError } from "../../volume/errors.ts";
import { assertVolumeId, isVolumeId } from "../../volume/model/ids/ids.ts";
import { isSnapshotId } from "../../volume/model/snapshots/snapshots.ts";
import { assertHandle, type VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import { maxDirectoryHandleBytes } from "../../volume/model/directory/handle.ts";
import type { SizeRange } from "../../volume/model/sizes.ts";
import type { SourceRef } from "../../volume/model/sources.ts";
import type { CapacityRange, VolumeCapability, VolumeContentSource } from "../generated/csi.ts";

/**
 * A required field that is a string.
 *
 * @throws {VolumeError} invalid when it is empty
 */
export function requiredField(name: string, value: string): string {
  if (value !== "") return value;
  throw missing(name);
}

function missing(name: string): VolumeError {
  return new VolumeError(
    "invalid",
    `Cannot serve the request because a required field is missing: ${name}`,
  );
}

/**
 * The volume id of a request, with a check of its form.
 *
 * @throws {VolumeError} invalid when it is missing or of another form
 */
export function requiredVolumeId(value: string): string {
  assertVolumeId(requiredField("volume_id", value));
  return value;
}

/**
 * Like {@linkcode requiredVolumeId}, for a request to a node: with several routers the id may have a prefix.
 *
 * @throws {VolumeError} invalid when it is missing or of another form
 */
export function requiredHandle(value: string): string {
  assertHandle(requiredField("volume_id", value));
  return value;
}

/**
 * The id of a shared directory: any text, because a person chooses that of a static volume.
 *
 * @throws {VolumeError} invalid when it is missing, has control characters, or is longer than the specification allows
 */
export function requiredDirectoryHandle(value: string): string {
  if (isDirectoryVolumeId(requiredField("volume_id", value))) return value;
  throw new VolumeError(
    "invalid",
    `Cannot use the volume id because it is ${isTooLong(value) ? "too long" : "not printable"}: ` +
      `volume=${JSON.stringify(value.slice(0, 64))}`,
  );
}

/** Whether a shared directory can have the id, see {@linkcode requiredDirectoryHandle}. */
export function isDirectoryVolumeId(value: string): boolean {
  // deno-lint-ignore no-control-regex
  return !isTooLong(value) && !/[\u0000-\u001f\u007f-\u009f]/.test(value);
}

function isTooLong(volumeId: string): boolean {
  return Buffer.byteLength(volumeId) > maxDirectoryHandleBytes;
}

/**
 * The id of a snapshot's source volume. An id that this driver never makes is the id of a missing volume.
 *
 * @throws {VolumeError} invalid when it is missing, not-found when it is of another form
 */
export function requiredSourceVolumeId(value: string): string {
  if (isVolumeId(requiredField("source_volume_id", value))) return value;
  throw new VolumeError(
    "not-found",
    `Cannot find the volume because there is none: volume=${JSON.stringify(value.slice(0, 64))}`,
  );
}

/**
 * The source of a volume; undefined when the request names none.
 *
 * @param ids those of the volume's router
 * @throws {VolumeError} invalid when its id is missing, not-found when it is of another form than this driver's,
 *   precondition when it is that of a snapshot of the legacy driver
 */
export function contentSource(
  source: VolumeContentSource | null,
  ids: VolumeIdPrefix,
): SourceRef | undefined {
  if (source === null) return undefined;
  if (source.volume) {
    return { kind: "volume", id: requiredSourceVolumeId(ids.strip(source.volume.volumeId) ?? "") };
  }
  const handle = source.snapshot?.snapshotId ?? "";
  const id = requiredField("volume_content_source.snapshot.snapshot_id", ids.strip(handle) ?? "");
  if (isSnapshotId(id)) return { kind: "snapshot", id };
  if (isLegacySnapshotId(id)) throw noData(id);
  throw new VolumeError(
    "not-found",
    `Cannot restore the snapshot because there is none: snapshot=${JSON.stringify(id.slice(0, 64))}`,
  );
}

/**
 * The required capability of a request.
 *
 * @param fsType the file system where the capability names none; "" for the driver's default
 * @throws {VolumeError} invalid when it is missing
 */
export function requiredCapability(capability: VolumeCapability | null, fsType = ""): RequestedCapability {
  if (capability === null) throw missing("volume_capability");
  return {
    access: capability.accessType,
    fsType: capability.mount?.fsType || fsType,
    mode: capability.accessMode?.mode ?? "none",
  };
}

/**
 * The required capabilities of a request, as {@linkcode requiredCapability} reads them.
 *
 * @throws {VolumeError} invalid when there is none
 */
export function requiredCapabilities(
  capabilities: readonly VolumeCapability[],
  fsType = "",
): RequestedCapability[] {
  if (capabilities.length === 0) throw missing("volume_capabilities");
  return capabilities.map((capability) => requiredCapability(capability, fsType));
}

/** The mount flags of a capability. */
export function mountFlagsOf(capability: VolumeCapability | null): readonly string[] {
  return capability?.mount?.mountFlags ?? [];
}

/** A capacity range in bytes; zeros where the request leaves it open. */
export function sizeRange(range: CapacityRange | null): SizeRange {
  return { requiredBytes: BigInt(range?.requiredBytes ?? 0), limitBytes: BigInt(range?.limitBytes ?? 0) };
}

/** The limits of Linux, where one byte ends the path (`PATH_MAX` and `NAME_MAX`). */
const maxPathBytes = 4095;
const maxNameBytes = 255;

/**
 * A required path: absolute, without `..`, within the system's limits; repeated and trailing slashes are removed.
 *
 * @throws {VolumeError} invalid when it is missing or anything else
 */
export function requiredPath(name: string, value: string): string {
  const names = requiredField(name, value).split("/").filter((part) => part !== "");
  if (!value.startsWith("/")) throw wrong(name, "it is not absolute");
  if (names.length === 0) throw wrong(name, "it is the root folder");
  if (names.some((part) => part === "." || part === "..")) throw wrong(name, 'it has "." or ".." in it');
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(value)) throw wrong(name, "it has control characters");
  const tooLong = names.some((part) => Buffer.byteLength(part) > maxNameBytes) ||
    Buffer.byteLength(value) > maxPathBytes;
  if (tooLong) throw wrong(name, "it is too long");
  return `/${names.join("/")}`;
}

function wrong(name: string, why: string): VolumeError {
  return new VolumeError("invalid", `Cannot use the path because ${why}: field=${name}`);
}
