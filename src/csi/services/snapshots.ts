import { deleteSnapshot } from "../../controller/snapshots/delete.ts";
import { assertEarlierGone, getSnapshot, listSnapshots } from "../../controller/snapshots/list.ts";
import { createSnapshot } from "../../controller/snapshots/create.ts";
import type { ControllerWorld } from "../../controller/deps.ts";
import { isEarlierSnapshotId } from "../../volume/model/legacy_snapshots.ts";
import { VolumeError } from "../../volume/errors.ts";
import { cutPage } from "../../volume/model/paging.ts";
import type { CallContext } from "../../volume/ports/ports.ts";
import { isSnapshotId, snapshotIdFor, type StoredSnapshot } from "../../volume/model/snapshots.ts";
import { method, type MethodsOf } from "../server/call.ts";
import type { ControllerHandlers } from "../generated/csi/v1/Controller.ts";
import type { CreateSnapshotRequest__Output } from "../generated/csi/v1/CreateSnapshotRequest.ts";
import type { CreateSnapshotResponse } from "../generated/csi/v1/CreateSnapshotResponse.ts";
import type { DeleteSnapshotRequest__Output } from "../generated/csi/v1/DeleteSnapshotRequest.ts";
import type { DeleteSnapshotResponse } from "../generated/csi/v1/DeleteSnapshotResponse.ts";
import type { GetSnapshotRequest__Output } from "../generated/csi/v1/GetSnapshotRequest.ts";
import type { GetSnapshotResponse } from "../generated/csi/v1/GetSnapshotResponse.ts";
import type { ListSnapshotsRequest__Output } from "../generated/csi/v1/ListSnapshotsRequest.ts";
import type { ListSnapshotsResponse } from "../generated/csi/v1/ListSnapshotsResponse.ts";
import type { Snapshot } from "../generated/csi/v1/Snapshot.ts";
import { requiredField, requiredSourceVolumeId } from "./requests.ts";

/** The part of the Controller service that is about snapshots. */
export function snapshotMethods(
  world: ControllerWorld,
): Pick<
  MethodsOf<ControllerHandlers>,
  "CreateSnapshot" | "DeleteSnapshot" | "ListSnapshots" | "GetSnapshot"
> {
  return {
    CreateSnapshot: method({
      changing: true,
      lockKey: (request: CreateSnapshotRequest__Output) =>
        snapshotIdFor(request.name, world.settings.cluster),
      handler: (request, context) => handleCreate(world, request, context),
    }),
    DeleteSnapshot: method({
      changing: true,
      lockKey: (request: DeleteSnapshotRequest__Output) => request.snapshotId,
      handler: (request, context) => handleDelete(world, request, context),
    }),
    ListSnapshots: method({
      changing: false,
      handler: (request: ListSnapshotsRequest__Output, context) => handleList(world, request, context),
    }),
    GetSnapshot: method({
      changing: false,
      handler: (request: GetSnapshotRequest__Output, context) => handleGet(world, request, context),
    }),
  };
}

async function handleCreate(
  world: ControllerWorld,
  request: CreateSnapshotRequest__Output,
  context: CallContext,
): Promise<CreateSnapshotResponse> {
  const name = requiredField("name", request.name);
  const source = requiredSourceVolumeId(request.sourceVolumeId);
  assertNoParameters(request.parameters);
  return { snapshot: describeSnapshot(await createSnapshot(world, { name, source }, context)) };
}

function assertNoParameters(parameters: Readonly<Record<string, string>>): void {
  const unknown = Object.keys(parameters).find((key) => !key.startsWith("csi.storage.k8s.io/"));
  if (unknown === undefined) return;
  throw new VolumeError(
    "invalid",
    `Cannot use the VolumeSnapshotClass parameter as it is unknown: key=${
      JSON.stringify(unknown.slice(0, 64))
    }; ` +
      "there are none",
  );
}

/**
 * A snapshot id that this driver never made is that of a snapshot that is not there (CSI specification, DeleteSnapshot).
 * One of the earlier driver's may be there all the same: OK is said of it only when a person has removed it.
 */
async function handleDelete(
  world: ControllerWorld,
  request: DeleteSnapshotRequest__Output,
  context: CallContext,
): Promise<DeleteSnapshotResponse> {
  const id = requiredField("snapshot_id", request.snapshotId);
  if (isEarlierSnapshotId(id)) await assertEarlierGone(world, "delete", id, context);
  else if (isSnapshotId(id)) await deleteSnapshot(world, id, context);
  return {};
}

async function handleList(
  world: ControllerWorld,
  request: ListSnapshotsRequest__Output,
  context: CallContext,
): Promise<ListSnapshotsResponse> {
  const page = { token: request.startingToken, maxEntries: request.maxEntries };
  cutPage([], page, () => 0, isSnapshotId); // A token or a number that is wrong needs no router to say so.
  const filter = { id: request.snapshotId, source: request.sourceVolumeId };
  const snapshots = await listSnapshots(world, filter, context);
  const { items, nextToken } = cutPage(snapshots, page, () => 160, isSnapshotId);
  return { entries: items.map((item) => ({ snapshot: describeSnapshot(item) })), nextToken };
}

async function handleGet(
  world: ControllerWorld,
  request: GetSnapshotRequest__Output,
  context: CallContext,
): Promise<GetSnapshotResponse> {
  const id = requiredField("snapshot_id", request.snapshotId);
  return { snapshot: describeSnapshot(await getSnapshot(world, id, context)) };
}

function describeSnapshot(snapshot: StoredSnapshot): Snapshot {
  return {
    snapshotId: snapshot.id,
    sourceVolumeId: snapshot.source,
    creationTime: { seconds: snapshot.createdAtSeconds, nanos: 0 },
    // What is still being copied has no size that could be relied on.
    sizeBytes: String(snapshot.ready ? snapshot.sizeBytes : 0n),
    readyToUse: snapshot.ready,
  };
}
