import { VolumeError } from "../../volume/errors.ts";
import type { OwnedVolume, VolumeRecord } from "../../volume/model/record.ts";
import { mayConsentToFormat } from "../../volume/rules/format_consent.ts";
import { isReadOnlyUse, mayFormat, type PublishRequest } from "../../volume/rules/publish.ts";
import type { ControllerCall } from "../deps.ts";

/**
 * The record of an epoch that begins: the owner of the claim may allow one more format, in exactly this one.
 *
 * @param latest the latest epoch that the cluster knows; undefined where it was asked, and did not answer
 * @throws {VolumeError} unavailable where the epoch would allow a format, and the cluster did not answer
 */
export async function withConsent(
  call: ControllerCall,
  volume: OwnedVolume,
  record: VolumeRecord,
  request: PublishRequest,
  latest: number | undefined,
): Promise<VolumeRecord> {
  const begun = await consentedTo(call, volume, record, request);
  // A consent may have been used in an epoch that the router has forgotten.
  assertNeverUsed(volume, begun, request, latest);
  return begun;
}

async function consentedTo(
  { consents, context, notes }: ControllerCall,
  { stored: { id } }: OwnedVolume,
  record: VolumeRecord,
  { capability, readOnly }: PublishRequest,
): Promise<VolumeRecord> {
  if (consents === undefined || !mayConsentToFormat(record, capability, readOnly)) return record;
  const { counter } = record.epoch!;
  try {
    if (!await consents.allowsFormat(id, counter, context.signal)) return record;
  } catch (error) {
    context.signal.throwIfAborted();
    notes.warn("cannot read whether the claim's owner allows a format", {
      volume: id,
      reason: String(error),
    });
    return record;
  }
  return { ...record, blankEpoch: counter };
}

/** Tells people of a format that the owner of the claim allows, now that the router has it on record. */
export function withConsentNoted(
  { notes }: ControllerCall,
  volume: OwnedVolume,
  isNew: boolean,
): OwnedVolume {
  const { stored: { id }, record: { epoch } } = volume;
  if (isNew) notes.warn("the claim's owner allows one format", { volume: id, epoch: epoch?.counter });
  return volume;
}

/**
 * Whether the epoch would allow a format, and the cluster does not say whether a node has had the volume: the record of a router
 * that went back in time says that it was never written.
 *
 * @param latest undefined where the cluster was asked, and did not answer
 */
function isOfDoubtfulUse(
  record: VolumeRecord,
  request: PublishRequest,
  latest: number | undefined,
): boolean {
  const readOnly = isReadOnlyUse(request.capability.mode, request.readOnly);
  return latest === undefined && mayFormat(record, record.epoch!, request, readOnly);
}

/** @throws {VolumeError} unavailable */
function assertNeverUsed(
  { stored: { id } }: OwnedVolume,
  record: VolumeRecord,
  request: PublishRequest,
  latest: number | undefined,
): void {
  if (!isOfDoubtfulUse(record, request, latest)) return;
  throw new VolumeError(
    "unavailable",
    `Cannot publish the volume yet because it is on record as never written, and the cluster does not say whether a node ` +
      `has had it since: volume=${id}; try again`,
  );
}
