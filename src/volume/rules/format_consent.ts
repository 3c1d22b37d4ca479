import type { Capability } from "../model/capabilities.ts";
import type { VolumeRecord } from "../model/record.ts";
import { isReadOnlyUse } from "./publish.ts";

/** The annotation by which the owner of a claim allows one format, see {@linkcode formatConsent}. */
export const formatConsentAnnotation = "rds.csi.srvlab.io/allow-format";

/** The value of the annotation: this volume, in this epoch and no other. */
export function formatConsent(volumeId: string, epochCounter: number): string {
  return `${volumeId}@${epochCounter}`;
}

/**
 * Whether the owner of the claim may allow a file system in the epoch that begins with that record: for a volume that
 * was made blank, and is to be written. The first epoch needs no consent.
 */
export function mayConsentToFormat(
  { epoch, blankEpoch, source }: VolumeRecord,
  capability: Capability,
  readOnly: boolean,
): boolean {
  return capability.access === "mount" && !isReadOnlyUse(capability.mode, readOnly) && source === undefined &&
    epoch !== undefined && epoch.counter !== blankEpoch;
}
