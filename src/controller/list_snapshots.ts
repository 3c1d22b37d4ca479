import { assertAbsenceProven } from "../volume/absence.ts";
import { VolumeError } from "../volume/errors.ts";
import { isVolumeId } from "../volume/ids.ts";
import type { CallContext } from "../volume/ports.ts";
import {
  anySnapshot,
  isSnapshotId,
  ownSnapshots,
  parseSnapshots,
  snapshotPart,
  type StoredSnapshot,
} from "../volume/snapshots.ts";
import type { ControllerWorld } from "./world.ts";

/** Which snapshots to list; "" leaves it open. */
export interface SnapshotFilter {
  readonly id: string;
  /** Id of the volume. */
  readonly source: string;
}

/**
 * The snapshots of this cluster that a filter lets through, ordered by id. One command; none for a filter that no
 * snapshot can meet.
 *
 * @throws {VolumeError} unavailable while files may be missing: after a boot, or with a pool not mounted
 */
export async function listSnapshots(
  world: ControllerWorld,
  filter: SnapshotFilter,
  context: CallContext,
): Promise<readonly StoredSnapshot[]> {
  const { basePaths, cluster, settleMs } = world.settings;
  if (filter.id !== "" && !isSnapshotId(filter.id)) return [];
  if (filter.source !== "" && !isVolumeId(filter.source)) return [];
  const part = filter.id !== ""
    ? snapshotPart(filter.id)
    : filter.source !== ""
    ? `.${filter.source}.`
    : anySnapshot;
  const view = await world.store.files(part, context);
  assertAbsenceProven(view, basePaths, settleMs);
  return ownSnapshots(parseSnapshots(view.files), cluster, basePaths).filter((one) =>
    (filter.id === "" || one.id === filter.id) && (filter.source === "" || one.source === filter.source)
  );
}

/**
 * One snapshot of this cluster. One command.
 *
 * @throws {VolumeError} not-found when it is provably not there, unavailable when its absence proves nothing
 */
export async function getSnapshot(
  world: ControllerWorld,
  id: string,
  context: CallContext,
): Promise<StoredSnapshot> {
  const found = (await listSnapshots(world, { id, source: "" }, context))[0];
  if (found !== undefined) return found;
  throw new VolumeError("not-found", `Cannot find the snapshot as there is none: snapshot=${id}`);
}
