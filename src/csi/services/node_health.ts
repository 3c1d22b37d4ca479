import type { NodeService } from "../../node/node_service.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { method, type MethodsOf, type RequestOf, type ResponseOf } from "../server/call.ts";
import type { NodeHandlers } from "../generated/csi/v1/Node.ts";
import { requiredHandle, requiredPath } from "./requests.ts";

type Request<Name extends keyof NodeHandlers> = RequestOf<NodeHandlers, Name>;
type Response<Name extends keyof NodeHandlers> = Promise<ResponseOf<NodeHandlers, Name>>;

/** The part of the Node service that is about health. */
export function nodeHealthMethods(
  service: NodeService,
): Pick<MethodsOf<NodeHandlers>, "NodeGetVolumeHealth" | "NodeGetStorageHealth"> {
  return {
    NodeGetVolumeHealth: method({
      changing: false,
      handler: (request: Request<"NodeGetVolumeHealth">, context) =>
        handleVolumeHealth(service, request, context),
    }),
    NodeGetStorageHealth: method({
      changing: false,
      handler: (_request: Request<"NodeGetStorageHealth">, context) => handleStorageHealth(service, context),
    }),
  };
}

/** The paths are checked for their form only: which ones the volume is at, this node knows better than a caller. */
async function handleVolumeHealth(
  service: NodeService,
  request: Request<"NodeGetVolumeHealth">,
  context: CallContext,
): Response<"NodeGetVolumeHealth"> {
  const volumeId = requiredHandle(request.volumeId);
  if (request.volumePublishPath !== "") requiredPath("volume_publish_path", request.volumePublishPath);
  if (request.stagingTargetPath !== "") requiredPath("staging_target_path", request.stagingTargetPath);
  const { id, problems } = await service.volumeHealth(volumeId, context);
  return { volumeHealth: { volumeId: id, healthStatuses: [...problems] } };
}

async function handleStorageHealth(
  service: NodeService,
  context: CallContext,
): Response<"NodeGetStorageHealth"> {
  return { backendHealth: [...await service.storageHealth(context)] };
}
