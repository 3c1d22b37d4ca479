import { assertAbsenceProven, assertShown } from "../../volume/rules/absence.ts";
import { assertNoLegacySnapshot, isLegacySnapshotId } from "../../volume/model/snapshots/legacy_snapshots.ts";
import { VolumeError } from "../../volume/errors.ts";
import { isVolumeId } from "../../volume/model/ids/ids.ts";
import { isSnapshotId } from "../../volume/model/snapshots/snapshots.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import {
  anySnapshot,
  ownSnapshots,
  parseSnapshots,
  snapshotPart,
  sourcePart,
  type StoredSnapshot,
} from "../../volume/model/snapshots/snapshots.ts";
import type { ControllerDeps } from "../deps.ts";

/** Which snapshots to list; "" leaves it open. */
export interface SnapshotFilter {
  readonly id: string;
  /** Id of the volume. */
  readonly source: string;
}

/**
 * The snapshots of this cluster that a filter lets through, ordered by id; none that is still being copied (CSI
 * specification, "ListSnapshots"). One command; none for a filter that no snapshot can meet.
 *
 * Those of the legacy driver are in no list: a Snapshot has to have a source and a time (CSI specification, "Snapshot"),
 * which nothing tells of them, and whoever reads a list would count them as copies. Who asks for one by its id is refused
 * with what it is: the snapshotter writes that into the VolumeSnapshotContent, for a person to read, and asks again. Told
 * that it is not ready yet, it would go on asking without a word; told that there is none, it would call it lost.
 *
 * @throws {VolumeError} unavailable while files may be missing: after a boot, or with a pool not mounted; precondition
 * for the id of one that the legacy driver has made
 */
export async function listSnapshots(
  deps: ControllerDeps,
  filter: SnapshotFilter,
  context: CallContext,
): Promise<readonly StoredSnapshot[]> {
  const { basePaths, cluster, settleMs } = deps.settings;
  if (isLegacySnapshotId(filter.id)) {
    await assertLegacySnapshotGone(deps, "show", filter.id, context);
    return [];
  }
  if (filter.id !== "" && !isSnapshotId(filter.id)) return [];
  if (filter.source !== "" && !isVolumeId(filter.source)) return [];
  const part = filter.id !== ""
    ? snapshotPart(filter.id)
    : filter.source !== ""
    ? sourcePart(filter.source)
    : anySnapshot;
  const view = await deps.store.files(part, context);
  assertShown(view, basePaths, settleMs);
  const found = ownSnapshots(parseSnapshots(view.files), cluster, basePaths).filter((one) =>
    one.ready && (filter.id === "" || one.id === filter.id) &&
    (filter.source === "" || one.source === filter.source)
  );
  if (part !== anySnapshot && found.length === 0) assertAbsenceProven(view, basePaths, settleMs);
  return found;
}

/**
 * One snapshot of this cluster. One command.
 *
 * @throws {VolumeError} not-found when it is provably not there, unavailable when its absence proves nothing;
 * precondition when the legacy driver has made it
 */
export async function getSnapshot(
  deps: ControllerDeps,
  id: string,
  context: CallContext,
): Promise<StoredSnapshot> {
  const found = (await listSnapshots(deps, { id, source: "" }, context))[0];
  if (found !== undefined) return found;
  throw new VolumeError("not-found", `Cannot find the snapshot because there is none: snapshot=${id}`);
}

/**
 * Finds a snapshot of the legacy driver provably gone, disk and image. One command. Nothing of it is ever removed: with
 * no record in its comment it could be somebody's disk that is called the same.
 *
 * @throws {VolumeError} precondition while anything of it is there, saying what it is and how a person removes it;
 * unavailable when nothing is and that proves nothing
 */
export async function assertLegacySnapshotGone(
  deps: ControllerDeps,
  verb: string,
  id: string,
  context: CallContext,
): Promise<void> {
  const { basePaths, settleMs } = deps.settings;
  const view = await deps.store.view(id, id, context);
  assertNoLegacySnapshot(verb, id, view, basePaths);
  assertAbsenceProven(view, basePaths, settleMs);
}
