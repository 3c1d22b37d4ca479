import type { NodeService } from "../../node/node_service.ts";
import type { VolumeStats } from "../../node/health/stats.ts";
import { VolumeError } from "../../volume/errors.ts";
import { isHandle } from "../../volume/model/ids/handles.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { parseCapability } from "../../volume/model/requested_capabilities.ts";
import { filesystemNamed } from "../../volume/model/parse_context.ts";
import { type HandlerOf, type MethodsOf, type RequestOf, type ResponseOf } from "../server/call.ts";
import type { NodeRpcs } from "../generated/csi.ts";
import { nodeMethodsOf } from "./node_methods.ts";
import {
  mountFlagsOf,
  requiredCapability,
  requiredField,
  requiredHandle,
  requiredPath,
  sizeRange,
} from "./requests.ts";

type Request<Name extends keyof NodeRpcs> = RequestOf<NodeRpcs, Name>;
type Handler<Name extends keyof NodeRpcs> = HandlerOf<NodeRpcs, Name, NodeService>;

/** The Node service of block volumes: see {@linkcode nodeMethodsOf}. */
export function nodeMethods(service: NodeService): MethodsOf<NodeRpcs> {
  return nodeMethodsOf(
    {
      NodeGetInfo: () => info(service),
      NodePublishVolume: (request, context) => handlePublish(service, request, context),
      NodeUnpublishVolume: (request, context) => handleUnpublish(service, request, context),
      NodeGetVolumeStats: (request, context) => handleStats(service, request, context),
      NodeGetVolumeHealth: (request, context) => handleVolumeHealth(service, request, context),
      NodeGetStorageHealth: async (_request, context) => ({
        backendHealth: [...await service.storageHealth(context)],
      }),
    },
    { isVolumeId: isHandle, isFree: (path) => service.isFree(path) },
    {
      NodeStageVolume: (request, context) => handleStage(service, request, context),
      NodeUnstageVolume: (request, context) => handleUnstage(service, request, context),
      NodeExpandVolume: (request, context) => handleExpand(service, request, context),
      whenBusy: {
        unstage: (request, context) => service.releaseWhileBusy(requiredHandle(request.volumeId), context),
        unpublish: (request, context) =>
          service.releaseWhileBusy(requiredHandle(request.volumeId), context, request.targetPath),
      },
    },
  );
}

/** Refuses the registration of a node that cannot connect, so that it gets no pods; the caller tries again. */
export async function info(
  service: Pick<NodeService, "obstacle" | "info">,
): Promise<ResponseOf<NodeRpcs, "NodeGetInfo">> {
  const obstacle = await service.obstacle();
  if (obstacle !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot register this node because it can reach no volume: ${obstacle}`,
    );
  }
  const { nodeId, maxVolumesPerNode, topology } = service.info();
  const isPlaced = Object.keys(topology).length > 0;
  return {
    nodeId,
    maxVolumesPerNode: String(maxVolumesPerNode),
    ...(isPlaced ? { accessibleTopology: { segments: { ...topology } } } : {}),
  };
}

const handleStage: Handler<"NodeStageVolume"> = async (service, request, context) => {
  const volumeId = requiredHandle(request.volumeId);
  const stagingPath = requiredPath("staging_target_path", request.stagingTargetPath);
  const capability = await service.parseForStage(
    { volumeId, stagingPath },
    context,
    () => capabilityOf(request),
  );
  const { publishContext, volumeContext, secrets } = request;
  const mountFlags = mountFlagsOf(request.volumeCapability);
  await service.stage(
    { volumeId, stagingPath, capability, mountFlags, publishContext, volumeContext, secrets },
    context,
  );
  return {};
};

const handleUnstage: Handler<"NodeUnstageVolume"> = async (service, request, context) => {
  const volumeId = requiredHandle(request.volumeId);
  const stagingPath = requiredPath("staging_target_path", request.stagingTargetPath);
  await service.unstage({ volumeId, stagingPath }, context);
  return {};
};

const handlePublish: Handler<"NodePublishVolume"> = async (service, request, context) => {
  const volumeId = requiredHandle(request.volumeId);
  const targetPath = requiredPath("target_path", request.targetPath);
  const parse = () => ({
    capability: capabilityOf(request),
    stagingPath: stagingPathOf(request),
  });
  const { capability, stagingPath } = await service.parseForPublish(targetPath, context, parse);
  const { publishContext, volumeContext, secrets, readonly: readOnly } = request;
  const mountFlags = mountFlagsOf(request.volumeCapability);
  const stage = { volumeId, stagingPath, capability, mountFlags, publishContext, volumeContext, secrets };
  await service.publish({ ...stage, targetPath, readOnly }, context);
  return {};
};

function capabilityOf(
  request: Pick<Request<"NodeStageVolume">, "publishContext" | "volumeContext" | "volumeCapability">,
): Capability {
  const fsType = filesystemNamed(request.publishContext, request.volumeContext);
  return parseCapability(requiredCapability(request.volumeCapability, fsType));
}

/** The one required field whose absence has its own code (CSI specification, "NodePublishVolume Errors"). */
function stagingPathOf(request: Request<"NodePublishVolume">): string {
  if (request.stagingTargetPath !== "") return requiredPath("staging_target_path", request.stagingTargetPath);
  throw new VolumeError("precondition", "Cannot publish the volume because no staging_target_path is given");
}

const handleUnpublish: Handler<"NodeUnpublishVolume"> = async (service, request, context) => {
  const volumeId = requiredHandle(request.volumeId);
  const targetPath = requiredPath("target_path", request.targetPath);
  await service.unpublish({ volumeId, targetPath }, context);
  return {};
};

/** A path of any form where the volume is not is answered as not found, here and for statistics. */
const handleExpand: Handler<"NodeExpandVolume"> = async (service, request, context) => {
  const volumeId = requiredHandle(request.volumeId);
  const volumePath = requiredField("volume_path", request.volumePath);
  const range = sizeRange(request.capacityRange);
  const sizeBytes = await service.expand({ volumeId, volumePath, range }, context);
  return { capacityBytes: String(sizeBytes) };
};

const handleStats: Handler<"NodeGetVolumeStats"> = async (service, request, context) => {
  const volumeId = requiredHandle(request.volumeId);
  const volumePath = requiredField("volume_path", request.volumePath);
  return usage(await service.stats(volumeId, volumePath, context));
};

/** The size and use of a volume as a response. */
export function usage(answer: VolumeStats): ResponseOf<NodeRpcs, "NodeGetVolumeStats"> {
  if (answer.kind === "block") return { usage: [{ unit: "BYTES", total: String(answer.totalBytes) }] };
  const { stats } = answer;
  return {
    usage: [
      {
        unit: "BYTES",
        total: String(stats.totalBytes),
        used: String(stats.usedBytes),
        available: String(stats.availableBytes),
      },
      {
        unit: "INODES",
        total: String(stats.totalInodes),
        used: String(stats.usedInodes),
        available: String(stats.freeInodes),
      },
    ],
  };
}

/**
 * Only the form of the paths is checked: this node's own record of a volume's paths is more reliable than a caller's.
 */
const handleVolumeHealth: Handler<"NodeGetVolumeHealth"> = async (service, request, context) => {
  const volumeId = requiredHandle(request.volumeId);
  if (request.volumePublishPath !== "") requiredPath("volume_publish_path", request.volumePublishPath);
  if (request.stagingTargetPath !== "") requiredPath("staging_target_path", request.stagingTargetPath);
  const { id, problems } = await service.volumeHealth(volumeId, context);
  return { volumeHealth: { volumeId: id, healthStatuses: [...problems] } };
};
