import { VolumeError } from "../../volume/errors.ts";
import type { FoundDevice, PathInfo, ProvenDevice } from "../../volume/ports/ports.ts";

/** What a device has to be. */
export interface ExpectedIdentity {
  readonly nqn: string;
  /** The size it has at least: volumes grow and never shrink. */
  readonly sizeBytes: bigint;
  /** NGUID or UUID seen before; undefined or "" when none was. */
  readonly uniqueId?: string;
}

/** A subsystem of this driver has one namespace, and that is its id. */
const onlyNsid = 1;

/**
 * Compares a device that was found with what was asked for; the only maker of a {@linkcode ProvenDevice}.
 *
 * `node` is what lies at the device's path right now: names of devices are given out anew.
 *
 * @throws {VolumeError} identity-mismatch when anything differs
 */
export function proveDevice(
  found: FoundDevice,
  node: PathInfo | undefined,
  expected: ExpectedIdentity,
): ProvenDevice {
  const known = expected.uniqueId ?? "";
  if (found.nqn !== expected.nqn) throw mismatch(found, `nqn=${expected.nqn}`, `nqn=${found.nqn}`);
  if (found.nsid !== onlyNsid) throw mismatch(found, `nsid=${onlyNsid}`, `nsid=${found.nsid}`);
  if (known !== "" && found.uniqueId !== known) throw mismatch(found, `id=${known}`, `id=${found.uniqueId}`);
  if (found.sizeBytes < expected.sizeBytes) {
    throw mismatch(found, `size>=${expected.sizeBytes}`, `size=${found.sizeBytes}`);
  }
  if (node?.kind !== "block" || node.deviceNumber !== found.deviceNumber) {
    throw mismatch(
      found,
      `number=${found.deviceNumber}`,
      `${node?.kind ?? "nothing"} number=${node?.deviceNumber}`,
    );
  }
  return found as ProvenDevice;
}

function mismatch(found: FoundDevice, expected: string, actual: string): VolumeError {
  return new VolumeError(
    "identity-mismatch",
    `Cannot use the device as it is not the volume: device=${found.path} expected ${expected} found ${actual}`,
  );
}
