import type { NodeService } from "../../node/node_service.ts";
import { filesystemNamed } from "../../node/stage/contexts.ts";
import type { VolumeStats } from "../../node/health/stats.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/ports.ts";
import { method, type MethodsOf } from "../server/call.ts";
import type { NodeHandlers } from "../generated/csi/v1/Node.ts";
import type { NodeExpandVolumeRequest__Output } from "../generated/csi/v1/NodeExpandVolumeRequest.ts";
import type { NodeExpandVolumeResponse } from "../generated/csi/v1/NodeExpandVolumeResponse.ts";
import type { NodeGetCapabilitiesResponse } from "../generated/csi/v1/NodeGetCapabilitiesResponse.ts";
import type { NodeGetInfoResponse } from "../generated/csi/v1/NodeGetInfoResponse.ts";
import type { NodeGetVolumeStatsRequest__Output } from "../generated/csi/v1/NodeGetVolumeStatsRequest.ts";
import type { NodeGetVolumeStatsResponse } from "../generated/csi/v1/NodeGetVolumeStatsResponse.ts";
import type { NodePublishVolumeRequest__Output } from "../generated/csi/v1/NodePublishVolumeRequest.ts";
import type { NodePublishVolumeResponse } from "../generated/csi/v1/NodePublishVolumeResponse.ts";
import type { NodeStageVolumeRequest__Output } from "../generated/csi/v1/NodeStageVolumeRequest.ts";
import type { NodeStageVolumeResponse } from "../generated/csi/v1/NodeStageVolumeResponse.ts";
import type { NodeUnpublishVolumeRequest__Output } from "../generated/csi/v1/NodeUnpublishVolumeRequest.ts";
import type { NodeUnpublishVolumeResponse } from "../generated/csi/v1/NodeUnpublishVolumeResponse.ts";
import type { NodeUnstageVolumeRequest__Output } from "../generated/csi/v1/NodeUnstageVolumeRequest.ts";
import type { NodeUnstageVolumeResponse } from "../generated/csi/v1/NodeUnstageVolumeResponse.ts";
import type { VolumeCapability__Output } from "../generated/csi/v1/VolumeCapability.ts";
import { nodeHealthMethods } from "./node_health.ts";
import { requiredPath } from "./node_paths.ts";
import { requiredCapability, requiredField, requiredHandle, sizeRange } from "./requests.ts";

/** What NodeGetCapabilities advertises: exactly what is there. */
export const nodeCapabilities = [
  "STAGE_UNSTAGE_VOLUME",
  "GET_VOLUME_STATS",
  "EXPAND_VOLUME",
  "SINGLE_NODE_MULTI_WRITER",
  "GET_VOLUME_HEALTH",
  "GET_STORAGE_HEALTH",
] as const;

/**
 * The Node service (CSI specification, "Node Service RPC"). A path is locked beside the volume: two volumes must not be
 * put at one path at once.
 */
export function nodeMethods(service: NodeService): MethodsOf<NodeHandlers> {
  return {
    NodeGetCapabilities: method({ changing: false, handler: () => Promise.resolve(capabilities()) }),
    NodeGetInfo: method({ changing: false, handler: () => Promise.resolve(info(service)) }),
    NodeStageVolume: method({
      changing: true,
      lockKey: (request: NodeStageVolumeRequest__Output) => [request.volumeId, request.stagingTargetPath],
      handler: (request, context) => handleStage(service, request, context),
    }),
    NodeUnstageVolume: method({
      changing: true,
      lockKey: (request: NodeUnstageVolumeRequest__Output) => [request.volumeId, request.stagingTargetPath],
      handler: (request, context) => handleUnstage(service, request, context),
      whenBusy: (request, context) => service.unstageWhileBusy(requiredHandle(request.volumeId), context),
    }),
    NodePublishVolume: method({
      changing: true,
      lockKey: (request: NodePublishVolumeRequest__Output) => [request.volumeId, request.targetPath],
      handler: (request, context) => handlePublish(service, request, context),
    }),
    NodeUnpublishVolume: method({
      changing: true,
      lockKey: (request: NodeUnpublishVolumeRequest__Output) => [request.volumeId, request.targetPath],
      handler: (request, context) => handleUnpublish(service, request, context),
    }),
    NodeExpandVolume: method({
      changing: true,
      lockKey: (request: NodeExpandVolumeRequest__Output) => request.volumeId,
      handler: (request, context) => handleExpand(service, request, context),
    }),
    NodeGetVolumeStats: method({
      changing: false,
      handler: (request: NodeGetVolumeStatsRequest__Output, context) =>
        handleStats(service, request, context),
    }),
    ...nodeHealthMethods(service),
  };
}

function capabilities(): NodeGetCapabilitiesResponse {
  return { capabilities: nodeCapabilities.map((type) => ({ rpc: { type } })) };
}

function info(service: NodeService): NodeGetInfoResponse {
  const { nodeId, maxVolumesPerNode, topology } = service.info();
  const isPlaced = Object.keys(topology).length > 0;
  return {
    nodeId,
    maxVolumesPerNode: String(maxVolumesPerNode),
    ...(isPlaced ? { accessibleTopology: { segments: { ...topology } } } : {}),
  };
}

async function handleStage(
  service: NodeService,
  request: NodeStageVolumeRequest__Output,
  context: CallContext,
): Promise<NodeStageVolumeResponse> {
  const volumeId = requiredHandle(request.volumeId);
  const stagingPath = requiredPath("staging_target_path", request.stagingTargetPath);
  const capability = requiredCapability(request.volumeCapability, fsTypeOf(request));
  const { publishContext, volumeContext } = request;
  const mountFlags = mountFlagsOf(request.volumeCapability);
  await service.stage(
    { volumeId, stagingPath, capability, mountFlags, publishContext, volumeContext },
    context,
  );
  return {};
}

async function handleUnstage(
  service: NodeService,
  request: NodeUnstageVolumeRequest__Output,
  context: CallContext,
): Promise<NodeUnstageVolumeResponse> {
  const volumeId = requiredHandle(request.volumeId);
  const stagingPath = requiredPath("staging_target_path", request.stagingTargetPath);
  await service.unstage({ volumeId, stagingPath }, context);
  return {};
}

async function handlePublish(
  service: NodeService,
  request: NodePublishVolumeRequest__Output,
  context: CallContext,
): Promise<NodePublishVolumeResponse> {
  const volumeId = requiredHandle(request.volumeId);
  const targetPath = requiredPath("target_path", request.targetPath);
  const capability = requiredCapability(request.volumeCapability, fsTypeOf(request));
  const stagingPath = stagingPathOf(request);
  const { publishContext, readonly: readOnly } = request;
  const mountFlags = mountFlagsOf(request.volumeCapability);
  await service.publish(
    { volumeId, stagingPath, targetPath, capability, mountFlags, readOnly, publishContext },
    context,
  );
  return {};
}

function fsTypeOf(
  request: Pick<NodeStageVolumeRequest__Output, "publishContext" | "volumeContext">,
): string {
  return filesystemNamed(request.publishContext, request.volumeContext);
}

/** The one required field whose absence has a code of its own (CSI specification, "NodePublishVolume Errors"). */
function stagingPathOf(request: NodePublishVolumeRequest__Output): string {
  if (request.stagingTargetPath !== "") return requiredPath("staging_target_path", request.stagingTargetPath);
  throw new VolumeError("precondition", "Cannot publish the volume as no staging_target_path is given");
}

async function handleUnpublish(
  service: NodeService,
  request: NodeUnpublishVolumeRequest__Output,
  context: CallContext,
): Promise<NodeUnpublishVolumeResponse> {
  const volumeId = requiredHandle(request.volumeId);
  const targetPath = requiredPath("target_path", request.targetPath);
  await service.unpublish({ volumeId, targetPath }, context);
  return {};
}

/** A path of whatever form at which the volume is not is one at which it is not found, here and for its statistics. */
async function handleExpand(
  service: NodeService,
  request: NodeExpandVolumeRequest__Output,
  context: CallContext,
): Promise<NodeExpandVolumeResponse> {
  const volumeId = requiredHandle(request.volumeId);
  const volumePath = requiredField("volume_path", request.volumePath);
  const range = sizeRange(request.capacityRange);
  const sizeBytes = await service.expand({ volumeId, volumePath, range }, context);
  return { capacityBytes: String(sizeBytes) };
}

async function handleStats(
  service: NodeService,
  request: NodeGetVolumeStatsRequest__Output,
  context: CallContext,
): Promise<NodeGetVolumeStatsResponse> {
  const volumeId = requiredHandle(request.volumeId);
  const volumePath = requiredField("volume_path", request.volumePath);
  return usage(await service.stats(volumeId, volumePath, context));
}

function usage(answer: VolumeStats): NodeGetVolumeStatsResponse {
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

function mountFlagsOf(capability: VolumeCapability__Output | null): readonly string[] {
  return capability?.mount?.mountFlags ?? [];
}
