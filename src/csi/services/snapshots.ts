import { deleteSnapshot } from "../../controller/snapshots/delete.ts";
import { assertLegacySnapshotGone, getSnapshot, listSnapshots } from "../../controller/snapshots/list.ts";
import { createSnapshot } from "../../controller/snapshots/create.ts";
import { usableBytes } from "../../volume/model/encryption.ts";
import { isLegacySnapshotId } from "../../volume/model/snapshots/legacy_snapshots.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type StoredSnapshot } from "../../volume/model/snapshots/snapshots.ts";
import { isSnapshotId, snapshotIdFor } from "../../volume/model/snapshots/snapshots.ts";
import type { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import type { HandlerOf, MethodsOf, RequestOf } from "../server/call.ts";
import type { ControllerRpcs, Snapshot } from "../generated/csi.ts";
import type { Sent } from "../server/proto.ts";
import { requiredField, requiredSourceVolumeId } from "./requests.ts";
import { listPage } from "./routers/paging.ts";
import type { Located, Routers } from "./routers/routers.ts";

type Request<Name extends keyof ControllerRpcs> = RequestOf<ControllerRpcs, Name>;
type Handler<Name extends keyof ControllerRpcs> = HandlerOf<ControllerRpcs, Name, Located>;

/** The snapshot methods of the Controller service. */
export function snapshotMethods(
  routers: Routers,
): Pick<
  MethodsOf<ControllerRpcs>,
  "CreateSnapshot" | "DeleteSnapshot" | "ListSnapshots" | "GetSnapshot"
> {
  return {
    CreateSnapshot: {
      changing: true,
      lockKey: ({ name, sourceVolumeId }) => {
        const { ids, deps } = routers.locate(sourceVolumeId).router;
        return ids.add(snapshotIdFor(name, deps.settings.cluster));
      },
      handler: routers.byId(({ sourceVolumeId }) => sourceVolumeId, handleCreate),
    },
    DeleteSnapshot: {
      changing: true,
      lockKey: ({ snapshotId }) => routers.lockKey(snapshotId),
      handler: routers.byId(({ snapshotId }) => snapshotId, handleDelete),
    },
    ListSnapshots: {
      changing: false,
      handler: async (request, context) => {
        const asked = narrowed(routers, request);
        if (asked === undefined) return { entries: [], nextToken: "" };
        return await listPage(asked, request, {
          read: ({ ids, deps }) => listSnapshots(deps, filterOf(ids, request), context),
          describe: (ids, snapshot) => ({ snapshot: describeSnapshot(ids, snapshot) }),
          sizeOf: () => 160,
          isId: isSnapshotId,
        });
      },
    },
    GetSnapshot: {
      changing: false,
      handler: routers.byId(({ snapshotId }) => snapshotId, handleGet),
    },
  };
}

/** The routers for a list of snapshots; undefined when its two filters belong to different ones. */
function narrowed(routers: Routers, request: Request<"ListSnapshots">): Routers | undefined {
  const handles = [request.snapshotId, request.sourceVolumeId].filter((handle) => handle !== "");
  const [first, second] = handles.map((handle) => routers.locate(handle).router);
  if (first === undefined) return routers;
  return second === undefined || second === first ? routers.only(first) : undefined;
}

const handleCreate: Handler<"CreateSnapshot"> = async (at, request, context) => {
  const name = requiredField("name", request.name);
  const { ids, deps } = at.router;
  const source = requiredSourceVolumeId(at.id);
  assertNoParameters(request.parameters);
  return { snapshot: describeSnapshot(ids, await createSnapshot(deps, { name, source }, context)) };
};

function assertNoParameters(parameters: Readonly<Record<string, string>>): void {
  const unknown = Object.keys(parameters).find((key) => !key.startsWith("csi.storage.k8s.io/"));
  if (unknown === undefined) return;
  throw new VolumeError(
    "invalid",
    "Cannot use the VolumeSnapshotClass parameter because it is unknown: " +
      `key=${JSON.stringify(unknown.slice(0, 64))}; there are none`,
  );
}

/**
 * A snapshot id that this driver never makes is the id of a missing snapshot (CSI specification, DeleteSnapshot). A
 * snapshot of the legacy driver may still exist: the answer is OK only after a person has removed it.
 */
const handleDelete: Handler<"DeleteSnapshot"> = async (
  { router: { deps }, id: given },
  _request,
  context,
) => {
  const id = requiredField("snapshot_id", given);
  if (isLegacySnapshotId(id)) await assertLegacySnapshotGone(deps, "delete", id, context);
  else if (isSnapshotId(id)) await deleteSnapshot(deps, id, context);
  return {};
};

/** The filters of a list by a router's own ids. */
function filterOf(ids: VolumeIdPrefix, { snapshotId, sourceVolumeId }: Request<"ListSnapshots">) {
  const own = (handle: string) => handle && (ids.strip(handle) ?? "");
  return { id: own(snapshotId), source: own(sourceVolumeId) };
}

const handleGet: Handler<"GetSnapshot"> = async ({ router: { ids, deps }, id: given }, _request, context) => {
  const id = requiredField("snapshot_id", given);
  return { snapshot: describeSnapshot(ids, await getSnapshot(deps, id, context)) };
};

function describeSnapshot(ids: VolumeIdPrefix, snapshot: StoredSnapshot): Sent<Snapshot> {
  return {
    snapshotId: ids.add(snapshot.id),
    sourceVolumeId: ids.add(snapshot.source),
    creationTime: { seconds: String(snapshot.createdAtSeconds), nanos: 0 },
    sizeBytes: String(usableBytes(snapshot.sizeBytes, snapshot.encrypted)),
    readyToUse: true,
  };
}
