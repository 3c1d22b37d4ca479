import { type Capability, parseCapability, type RequestedCapability } from "../volume/capabilities.ts";
import { VolumeError } from "../volume/errors.ts";
import { assertVolumeId } from "../volume/ids.ts";
import type { SizeRange } from "../volume/sizes.ts";
import type { CapacityRange__Output } from "./generated/csi/v1/CapacityRange.ts";
import type { VolumeCapability__Output } from "./generated/csi/v1/VolumeCapability.ts";

/**
 * A required field that is a string.
 *
 * @throws {VolumeError} invalid when it is empty
 */
export function requiredField(name: string, value: string): string {
  if (value !== "") return value;
  throw new VolumeError("invalid", `Cannot serve the request as a required field is missing: ${name}`);
}

/**
 * The volume id of a request, checked for its form.
 *
 * @throws {VolumeError} invalid when it is missing or of another form
 */
export function requiredVolumeId(value: string): string {
  assertVolumeId(requiredField("volume_id", value));
  return value;
}

/**
 * A capability as the request names it.
 *
 * @param fsType the file system where the capability names none; "" leaves it to the driver
 */
export function requestedCapability(
  capability: VolumeCapability__Output,
  fsType: string,
): RequestedCapability {
  return {
    access: capability.accessType,
    fsType: capability.mount?.fsType || fsType,
    mode: capability.accessMode?.mode ?? "none",
  };
}

/**
 * The required capability of a request.
 *
 * @throws {VolumeError} invalid when it is missing or not supported
 */
export function requiredCapability(capability: VolumeCapability__Output | null, fsType: string): Capability {
  if (capability === null) {
    throw new VolumeError(
      "invalid",
      "Cannot serve the request as a required field is missing: volume_capability",
    );
  }
  return parseCapability(requestedCapability(capability, fsType));
}

/**
 * The required capabilities of a request.
 *
 * @throws {VolumeError} invalid when there is none
 */
export function requiredCapabilities(
  capabilities: readonly VolumeCapability__Output[],
  fsType: string,
): RequestedCapability[] {
  if (capabilities.length === 0) {
    throw new VolumeError(
      "invalid",
      "Cannot serve the request as a required field is missing: volume_capabilities",
    );
  }
  return capabilities.map((capability) => requestedCapability(capability, fsType));
}

/** A capacity range in bytes; zeros where the request leaves it open. */
export function sizeRange(range: CapacityRange__Output | null): SizeRange {
  return { requiredBytes: BigInt(range?.requiredBytes ?? 0), limitBytes: BigInt(range?.limitBytes ?? 0) };
}
