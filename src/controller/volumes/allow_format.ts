import { parseRecordedCapabilities } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isEncrypted, nodeIdsOf, type OwnedVolume } from "../../volume/model/record.ts";
import { raisedRecord } from "../../volume/rules/publish.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import { notFound, readView } from "../load.ts";
import { assertNotImported } from "../../volume/rules/import.ts";
import { latestEpoch } from "../records/epochs.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import type { View } from "../records/view.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Renews the blankness of a volume that nobody holds: its next epoch may make a file system again, if the device then
 * proves empty. A person's decision; it opens no device and weakens none of the node's checks. Two commands.
 *
 * @throws {VolumeError} not-found, unavailable; precondition when a node holds it, it is exported, not this cluster's
 * or a block volume
 */
export async function allowFormat(deps: ControllerDeps, id: string, context: CallContext): Promise<void> {
  const call = { ...deps, context };
  const verb = "allow formatting";
  const rule = (view: View) => decideAllowing(call, view, verb);
  await changeByRule(call, { id, verb, read: () => readView(call, id, verb) }, rule);
}

async function decideAllowing(
  call: ControllerCall,
  view: View,
  verb: string,
): Promise<Decision<OwnedVolume>> {
  if (view.isAssumed) return { need: "own" };
  if (view.volume === undefined) throw notFound(verb, view.id);
  const volume = assertOwned(view.volume, call.settings.cluster, verb);
  assertNotImported(volume, verb, "it may hold data of its owner");
  assertIdleFilesystemVolume(volume);
  // In epoch 0 the record would say that the volume was never written, and so would those of its clones and snapshots.
  const least = volume.record.blankEpoch === 0 ? 1 : 0;
  const raised = raisedRecord(volume.record, Math.max(least, await latestEpoch(call, volume)), call.random);
  const record = { ...raised, blankEpoch: (raised.epoch?.counter ?? 0) + 1 };
  const isDone = (after: StoredVolume) => !after.exported;
  return { step: { kind: "rewrite", volume, record, change: {}, isDone }, next: (after) => after };
}

function assertIdleFilesystemVolume({ stored, record }: OwnedVolume): void {
  const reason = record.holders.length > 0
    ? `it is published: node=${nodeIdsOf(record.holders).join(", ")}`
    : stored.exported
    ? "it is exported; unpublish it first"
    : parseRecordedCapabilities(record.capabilities)?.kind.access !== "mount" && !isEncrypted(record)
    ? "it is not a file system volume"
    : undefined;
  if (reason === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot allow formatting the volume because ${reason}: volume=${stored.id}`,
  );
}
