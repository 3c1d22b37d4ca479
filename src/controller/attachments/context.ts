import { formatEpoch } from "../../volume/model/epoch.ts";
import type { VolumeParameters } from "../../volume/model/parameters.ts";
import {
  type ContextValues,
  formatPublishContext,
  type PublishContext,
} from "../../volume/model/publish_context.ts";
import { holderOf, type OwnedVolume } from "../../volume/model/record.ts";
import { isImported } from "../../volume/model/sources.ts";
import { mayConsentToFormat } from "../../volume/rules/format_consent.ts";
import { isReadOnlyUse, mayFormat, mayReplay, type PublishRequest } from "../../volume/rules/publish.ts";
import type { ControllerDeps } from "../deps.ts";
import { recordNqn } from "../records/steps.ts";

/** What the node is told of a volume that was published to it, by what was read back. */
export function publishContext(
  deps: ControllerDeps,
  volume: OwnedVolume,
  request: PublishRequest,
  parameters: VolumeParameters,
): ContextValues {
  const { record, stored } = volume;
  const { nodeId, capability, needsLayer = false, encrypted = false } = request;
  const readOnly = isReadOnlyUse(capability.mode, request.readOnly);
  const mayConsent = mayConsentToFormat(record, capability, request.readOnly);
  const context: PublishContext = {
    nqn: recordNqn(deps, volume, record),
    epoch: formatEpoch(record.epoch!),
    addresses: parameters.nvmeAddress.split(","),
    port: stored.exportPort,
    sizeBytes: stored.sizeBytes,
    readOnly,
    mayFormat: mayFormat(record, record.epoch!, request, readOnly),
    imported: isImported(record),
    // A node that refuses to make a file system names whose consent it takes.
    claim: mayConsent ? deps.consents?.claimOf(stored.id) : undefined,
    mayReplay: mayReplay(record, nodeId, capability, readOnly),
    machine: holderOf(record, nodeId)?.machine,
    needsLayer,
    encrypted,
  };
  return formatPublishContext(context, capability.access === "mount" ? capability.filesystem : "");
}
