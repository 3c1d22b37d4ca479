import type { CallContext } from "../../volume/ports/system.ts";
import { method, type MethodsOf, type RequestOf, type ResponseOf } from "../server/call.ts";
import type { NodeRpcs } from "../generated/csi.ts";
import { requiredPath } from "./requests.ts";

type Request<Name extends keyof NodeRpcs> = RequestOf<NodeRpcs, Name>;

/** The capabilities of NodeGetCapabilities that volumes of every kind have: exactly the implemented ones. */
const nodeCapabilities = [
  "GET_VOLUME_STATS",
  "SINGLE_NODE_MULTI_WRITER",
  "GET_VOLUME_HEALTH",
  "GET_STORAGE_HEALTH",
] as const;

/** Those that only volumes with a device of their own have. */
const deviceCapabilities = ["STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME"] as const;

type Calls<Name extends keyof NodeRpcs> = {
  readonly [One in Name]: (request: Request<One>, context: CallContext) => Promise<ResponseOf<NodeRpcs, One>>;
};

type DeviceRpcs = "NodeStageVolume" | "NodeUnstageVolume" | "NodeExpandVolume";

/** What serves the calls of the Node service for volumes of every kind. */
export type NodeCalls = Calls<Exclude<keyof NodeRpcs, "NodeGetCapabilities" | DeviceRpcs>>;

/** What serves the calls for volumes that have a device of their own. */
export interface DeviceCalls extends Calls<DeviceRpcs> {
  /** Called for a call that is refused because another one holds its volume. */
  readonly whenBusy: {
    readonly unstage: (request: Request<"NodeUnstageVolume">, context: CallContext) => Promise<void>;
    readonly unpublish: (request: Request<"NodeUnpublishVolume">, context: CallContext) => Promise<void>;
  };
}

/** What a call that takes a volume down asks first. */
export interface TeardownChecks {
  /** Whether a volume can have the id. */
  isVolumeId(volumeId: string): boolean;
  /** Whether nothing is mounted at the path. */
  isFree(path: string): Promise<boolean>;
}

/**
 * The Node service (CSI specification, "Node Service RPC"). A path is locked beside the volume: two volumes must not be
 * put at one path at once.
 *
 * @param device what serves volumes with a device of their own, where there are any
 */
export function nodeMethodsOf(
  calls: NodeCalls,
  checks: TeardownChecks,
  device?: DeviceCalls,
): MethodsOf<NodeRpcs> {
  const types = [...nodeCapabilities, ...device === undefined ? [] : deviceCapabilities];
  const capabilities = types.map((type) => ({ rpc: { type } }));
  return {
    NodeGetCapabilities: method({ changing: false, handler: () => Promise.resolve({ capabilities }) }),
    NodeGetInfo: method({ changing: false, handler: calls.NodeGetInfo }),
    NodePublishVolume: method({
      changing: true,
      // It may have to stage the volume anew.
      lockKey: (
        { volumeId, targetPath, stagingTargetPath }: Request<"NodePublishVolume">,
      ) => [volumeId, targetPath, stagingTargetPath],
      handler: calls.NodePublishVolume,
    }),
    NodeUnpublishVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeUnpublishVolume">) => [request.volumeId, request.targetPath],
      handler: async (request, context) =>
        await isDone(checks, request.volumeId, "target_path", request.targetPath)
          ? {}
          : await calls.NodeUnpublishVolume(request, context),
      ...device && { whenBusy: device.whenBusy.unpublish },
    }),
    NodeGetVolumeStats: method({ changing: false, handler: calls.NodeGetVolumeStats }),
    NodeGetVolumeHealth: method({ changing: false, handler: calls.NodeGetVolumeHealth }),
    NodeGetStorageHealth: method({ changing: false, handler: calls.NodeGetStorageHealth }),
    ...device && deviceMethods(device, checks),
  };
}

function deviceMethods(calls: DeviceCalls, checks: TeardownChecks): MethodsOf<NodeRpcs> {
  return {
    NodeStageVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeStageVolume">) => [request.volumeId, request.stagingTargetPath],
      handler: calls.NodeStageVolume,
    }),
    NodeUnstageVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeUnstageVolume">) => [request.volumeId, request.stagingTargetPath],
      handler: async (request, context) =>
        await isDone(checks, request.volumeId, "staging_target_path", request.stagingTargetPath)
          ? {}
          : await calls.NodeUnstageVolume(request, context),
      whenBusy: calls.whenBusy.unstage,
    }),
    NodeExpandVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeExpandVolume">) => request.volumeId,
      handler: calls.NodeExpandVolume,
    }),
  };
}

/**
 * Whether there is nothing to take down: no volume can have the id, and nothing is mounted at the path. Otherwise a pod
 * whose object a person has made with such an id could never end.
 *
 * @throws {VolumeError} invalid when the path is missing or of another form
 */
async function isDone(
  checks: TeardownChecks,
  volumeId: string,
  field: string,
  path: string,
): Promise<boolean> {
  if (volumeId === "" || checks.isVolumeId(volumeId)) return false;
  return await checks.isFree(requiredPath(field, path));
}
