import { withDeadline } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import type { ControllerCall } from "../deps.ts";

/** How long a step waits for the cluster, in milliseconds: while the API server is away, nodes get and lose volumes as usual. */
const answerTimeoutMs = 5_000;

/**
 * The counter of the latest epoch that a node was given of a volume, by what the cluster knows; 0 where there is none to ask. A
 * router may have gone back in time, and its record with it: the next epoch is later than both. The cluster is asked only for a
 * record that this process has not written: to its own nobody has given a later epoch.
 *
 * @throws {VolumeError} unavailable when the cluster does not answer
 */
export async function latestEpoch(call: ControllerCall, { stored }: OwnedVolume): Promise<number> {
  const { clusterView, memory: { known }, context } = call;
  const remembered = clusterView === undefined ? 0 : known.latestEpoch(stored);
  if (clusterView === undefined || remembered !== undefined) return remembered ?? 0;
  const latest = await clusterView.latestEpoch(stored.id, context);
  known.noteLatestEpoch(stored, latest);
  return latest;
}

/**
 * The same for a step that may go on without the answer, as undefined: a node takes another epoch of the same counter for a later
 * one. The next call asks again.
 */
export async function latestEpochIfReported(
  call: ControllerCall,
  volume: OwnedVolume,
): Promise<number | undefined> {
  const { clock, clusterView, context, memory, notes } = call;
  // A deadline costs more than an answer that is there already.
  if (clusterView === undefined || memory.known.latestEpoch(volume.stored) !== undefined) {
    return await latestEpoch(call, volume);
  }
  const late = new VolumeError("unavailable", `it has not answered within ${answerTimeoutMs / 1000} s`);
  try {
    return await withDeadline(
      clock,
      context,
      answerTimeoutMs,
      late,
      (limited) => latestEpoch({ ...call, context: limited }, volume),
    );
  } catch (error) {
    context.signal.throwIfAborted();
    if (!VolumeError.is(error, "unavailable")) throw error;
    const fields = { volume: volume.stored.id, reason: error.message };
    notes.warn("going on without the cluster's word on the volume's latest epoch", fields);
    return undefined;
  }
}

/** Whether the record is older than what a node was given since, by that counter. */
export function isOlderThan(latest: number, { record }: OwnedVolume): boolean {
  return latest > (record.epoch?.counter ?? 0);
}

/**
 * What people are told of a volume that was withdrawn because its record is older than an epoch that the cluster knows, as when a
 * router has lost its last seconds: its holders were shut out, and the attachment that knows of the later epoch may be about to go.
 */
export function olderEpoch({ stored, record }: OwnedVolume, known: number) {
  const [volumeId, recorded, withdrawn] = [stored.id, record.epoch?.counter ?? 0, stored.exported];
  return { kind: "older-epoch", volumeId, recorded, known, withdrawn } as const;
}
