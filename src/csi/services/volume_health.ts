import type { VolumeHealth } from "../../volume/model/health.ts";
import type { VolumeHealth as VolumeHealthMessage } from "../generated/csi/v1/VolumeHealth.ts";

/** A volume's health as it goes on the wire. */
export function describeHealth({ id, problems }: VolumeHealth): VolumeHealthMessage {
  return { volumeId: id, healthStatuses: [...problems] };
}
