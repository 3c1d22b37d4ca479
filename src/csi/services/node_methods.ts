import type { CallContext } from "../../volume/ports/system.ts";
import { method, type MethodsOf, type RequestOf, type ResponseOf } from "../server/call.ts";
import type { NodeRpcs } from "../generated/csi.ts";

type Request<Name extends keyof NodeRpcs> = RequestOf<NodeRpcs, Name>;

/** The capabilities of NodeGetCapabilities: exactly the implemented ones. */
export const nodeCapabilities = [
  "STAGE_UNSTAGE_VOLUME",
  "GET_VOLUME_STATS",
  "EXPAND_VOLUME",
  "SINGLE_NODE_MULTI_WRITER",
  "GET_VOLUME_HEALTH",
  "GET_STORAGE_HEALTH",
] as const;

/** What serves the calls of the Node service, whatever its volumes are. */
export type NodeCalls = {
  readonly [Name in Exclude<keyof NodeRpcs, "NodeGetCapabilities">]: (
    request: Request<Name>,
    context: CallContext,
  ) => Promise<ResponseOf<NodeRpcs, Name>>;
};

/** Called for a call that is refused because another one holds its volume. */
export interface WhenBusy {
  readonly unstage?: (request: Request<"NodeUnstageVolume">, context: CallContext) => Promise<void>;
  readonly unpublish?: (request: Request<"NodeUnpublishVolume">, context: CallContext) => Promise<void>;
}

/**
 * The Node service (CSI specification, "Node Service RPC"). A path is locked beside the volume: two volumes must not be
 * put at one path at once.
 */
export function nodeMethodsOf(calls: NodeCalls, whenBusy: WhenBusy = {}): MethodsOf<NodeRpcs> {
  const { unstage, unpublish } = whenBusy;
  return {
    NodeGetCapabilities: method({ changing: false, handler: () => Promise.resolve(capabilities()) }),
    NodeGetInfo: method({ changing: false, handler: calls.NodeGetInfo }),
    NodeStageVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeStageVolume">) => [request.volumeId, request.stagingTargetPath],
      handler: calls.NodeStageVolume,
    }),
    NodeUnstageVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeUnstageVolume">) => [request.volumeId, request.stagingTargetPath],
      handler: calls.NodeUnstageVolume,
      ...unstage && { whenBusy: unstage },
    }),
    NodePublishVolume: method({
      changing: true,
      lockKey: (request: Request<"NodePublishVolume">) => [request.volumeId, request.targetPath],
      handler: calls.NodePublishVolume,
    }),
    NodeUnpublishVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeUnpublishVolume">) => [request.volumeId, request.targetPath],
      handler: calls.NodeUnpublishVolume,
      ...unpublish && { whenBusy: unpublish },
    }),
    NodeExpandVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeExpandVolume">) => request.volumeId,
      handler: calls.NodeExpandVolume,
    }),
    NodeGetVolumeStats: method({ changing: false, handler: calls.NodeGetVolumeStats }),
    NodeGetVolumeHealth: method({ changing: false, handler: calls.NodeGetVolumeHealth }),
    NodeGetStorageHealth: method({ changing: false, handler: calls.NodeGetStorageHealth }),
  };
}

function capabilities(): ResponseOf<NodeRpcs, "NodeGetCapabilities"> {
  return { capabilities: nodeCapabilities.map((type) => ({ rpc: { type } })) };
}
