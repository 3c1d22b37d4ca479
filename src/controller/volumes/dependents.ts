import { VolumeError } from "../../volume/errors.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { Inventory } from "../../volume/model/inventory.ts";
import {
  ownSnapshots,
  parseSnapshots,
  snapshotPart,
  sourcePart,
  type StoredSnapshot,
} from "../../volume/model/snapshots.ts";
import { formatSource, type SourceRef } from "../../volume/model/sources.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/**
 * Refuses to delete a volume that snapshots or clones were made from, on routers that keep a subvolume while there are
 * snapshots of it. Elsewhere nothing depends on anything. No command there, else one.
 *
 * @throws {VolumeError} precondition naming them
 */
export async function assertNoSnapshotsHold(call: ControllerCall, { stored }: OwnedVolume): Promise<void> {
  if (call.settings.subvolumeParent === "free") return;
  const source = { kind: "volume", id: stored.id } as const;
  const view = await call.store.madeFrom(formatSource(source), sourcePart(stored.id), call.context);
  const { cluster, basePaths } = call.settings;
  const snapshots = ownSnapshots(parseSnapshots(view.files), cluster, basePaths)
    .filter((snapshot) => snapshot.source === stored.id && snapshot.imagePath.endsWith("/disk.img"));
  const dependents = [
    ...snapshots.map((snapshot) => snapshot.id),
    ...clonesOf(call, view, source),
  ];
  refuseWith("volume", stored.id, dependents);
}

/**
 * Refuses to delete a snapshot that volumes were made from, as {@linkcode assertNoSnapshotsHold} does.
 *
 * @throws {VolumeError} precondition naming them
 */
export async function assertNoClonesHold(
  call: ControllerCall,
  snapshot: Pick<StoredSnapshot, "id">,
): Promise<void> {
  if (call.settings.subvolumeParent === "free") return;
  const source = { kind: "snapshot", id: snapshot.id } as const;
  const view = await call.store.madeFrom(formatSource(source), snapshotPart(snapshot.id), call.context);
  refuseWith("snapshot", snapshot.id, clonesOf(call, view, source));
}

function clonesOf(deps: ControllerDeps, view: Inventory, source: SourceRef): string[] {
  return view.volumes.filter((stored) => {
    const ownership = judgeOwnership(stored, deps.settings.cluster);
    const madeFrom = ownership.state === "owned"
      ? ownership.volume.record.source
      : ownership.state === "unreadable"
      ? ownership.source
      : undefined;
    return stored.imagePath.endsWith("/disk.img") && madeFrom === formatSource(source);
  }).map((stored) => stored.id);
}

function refuseWith(object: string, id: string, dependents: readonly string[]): void {
  if (dependents.length === 0) return;
  throw new VolumeError(
    "precondition",
    `Cannot delete the ${object} because this router keeps it while its dependents exist: ${object}=${id} ` +
      `dependents=${dependents.join(", ")}; delete those first`,
  );
}
