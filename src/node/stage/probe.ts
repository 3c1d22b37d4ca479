import { VolumeError } from "../../volume/errors.ts";
import type { DeviceProbe, ProbeOptions, ProvenDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { NodeDeps } from "../deps.ts";

/**
 * Reads what is on a device, before it is decided whether anything may be made there.
 *
 * @throws {VolumeError} unavailable when it cannot be read, which is counted as a refusal to format
 */
export async function probeDevice(
  deps: NodeDeps,
  device: ProvenDevice,
  context: CallContext,
  options: ProbeOptions = {},
): Promise<DeviceProbe> {
  try {
    return await deps.filesystems.probe(device, context, options);
  } catch (error) {
    if (VolumeError.is(error, "unavailable")) {
      deps.events.occurred({ kind: "format-refused", reason: "unreadable" });
    }
    throw error;
  }
}
