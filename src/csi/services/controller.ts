import { createVolume } from "../../controller/volumes/create.ts";
import { deleteVolume } from "../../controller/volumes/delete.ts";
import { expandVolume } from "../../controller/volumes/expand.ts";
import { publishVolume } from "../../controller/attachments/publish.ts";
import { getCapacity, getVolume, listVolumes, reasonAgainst } from "../../controller/volumes/read.ts";
import { unpublishVolume } from "../../controller/attachments/unpublish.ts";
import type { ControllerWorld } from "../../controller/deps.ts";
import { parseCapabilities } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import { assertNodeId, volumeIdFor } from "../../volume/model/ids.ts";
import { cutPage } from "../../volume/model/paging.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import {
  parseParameters,
  parseStatic,
  parseVolumeContext,
  volumeContext,
} from "../../volume/model/parameters.ts";
import { publishedNodeIds } from "../../volume/rules/publish.ts";
import type { CallContext } from "../../volume/ports/ports.ts";
import { method, type MethodsOf } from "../server/call.ts";
import { healthMethods } from "./controller_health.ts";
import { snapshotMethods } from "./snapshots.ts";
import type { ControllerHandlers } from "../generated/csi/v1/Controller.ts";
import type { ControllerExpandVolumeRequest__Output } from "../generated/csi/v1/ControllerExpandVolumeRequest.ts";
import type { ControllerExpandVolumeResponse } from "../generated/csi/v1/ControllerExpandVolumeResponse.ts";
import type { ControllerGetCapabilitiesResponse } from "../generated/csi/v1/ControllerGetCapabilitiesResponse.ts";
import type { ControllerGetVolumeRequest__Output } from "../generated/csi/v1/ControllerGetVolumeRequest.ts";
import type { ControllerGetVolumeResponse } from "../generated/csi/v1/ControllerGetVolumeResponse.ts";
import type { ControllerPublishVolumeRequest__Output } from "../generated/csi/v1/ControllerPublishVolumeRequest.ts";
import type { ControllerPublishVolumeResponse } from "../generated/csi/v1/ControllerPublishVolumeResponse.ts";
import type { ControllerUnpublishVolumeRequest__Output } from "../generated/csi/v1/ControllerUnpublishVolumeRequest.ts";
import type { ControllerUnpublishVolumeResponse } from "../generated/csi/v1/ControllerUnpublishVolumeResponse.ts";
import type { CreateVolumeRequest__Output } from "../generated/csi/v1/CreateVolumeRequest.ts";
import type { CreateVolumeResponse } from "../generated/csi/v1/CreateVolumeResponse.ts";
import type { DeleteVolumeRequest__Output } from "../generated/csi/v1/DeleteVolumeRequest.ts";
import type { DeleteVolumeResponse } from "../generated/csi/v1/DeleteVolumeResponse.ts";
import type { GetCapacityRequest__Output } from "../generated/csi/v1/GetCapacityRequest.ts";
import type { GetCapacityResponse } from "../generated/csi/v1/GetCapacityResponse.ts";
import type { ListVolumesRequest__Output } from "../generated/csi/v1/ListVolumesRequest.ts";
import type { ListVolumesResponse } from "../generated/csi/v1/ListVolumesResponse.ts";
import type { ValidateVolumeCapabilitiesRequest__Output } from "../generated/csi/v1/ValidateVolumeCapabilitiesRequest.ts";
import type { ValidateVolumeCapabilitiesResponse } from "../generated/csi/v1/ValidateVolumeCapabilitiesResponse.ts";
import {
  contentSource,
  requiredCapabilities,
  requiredCapability,
  requiredField,
  requiredVolumeId,
  sizeRange,
} from "./requests.ts";

/** What ControllerGetCapabilities advertises: exactly what is there. */
export const controllerCapabilities = [
  "CREATE_DELETE_VOLUME",
  "PUBLISH_UNPUBLISH_VOLUME",
  "LIST_VOLUMES",
  "LIST_VOLUMES_PUBLISHED_NODES",
  "GET_CAPACITY",
  "CREATE_DELETE_SNAPSHOT",
  "LIST_SNAPSHOTS",
  "GET_SNAPSHOT",
  "CLONE_VOLUME",
  "PUBLISH_READONLY",
  "EXPAND_VOLUME",
  "GET_VOLUME",
  "SINGLE_NODE_MULTI_WRITER",
  "GET_VOLUME_HEALTH",
  "LIST_VOLUME_HEALTH",
] as const;

/** The Controller service over a world (CSI specification, "Controller Service RPC"). */
export function controllerMethods(world: ControllerWorld): MethodsOf<ControllerHandlers> {
  return {
    ControllerGetCapabilities: method({ changing: false, handler: () => Promise.resolve(capabilities()) }),
    CreateVolume: method({
      changing: true,
      lockKey: (request: CreateVolumeRequest__Output) => volumeIdFor(request.name),
      handler: (request, context) => handleCreate(world, request, context),
    }),
    DeleteVolume: method({
      changing: true,
      lockKey: (request: DeleteVolumeRequest__Output) => request.volumeId,
      handler: (request, context) => handleDelete(world, request, context),
    }),
    ControllerPublishVolume: method({
      changing: true,
      lockKey: (request: ControllerPublishVolumeRequest__Output) => request.volumeId,
      handler: (request, context) => handlePublish(world, request, context),
    }),
    ControllerUnpublishVolume: method({
      changing: true,
      lockKey: (request: ControllerUnpublishVolumeRequest__Output) => request.volumeId,
      handler: (request, context) => handleUnpublish(world, request, context),
    }),
    ControllerExpandVolume: method({
      changing: true,
      lockKey: (request: ControllerExpandVolumeRequest__Output) => request.volumeId,
      handler: (request, context) => handleExpand(world, request, context),
    }),
    ValidateVolumeCapabilities: method({
      changing: false,
      handler: (request: ValidateVolumeCapabilitiesRequest__Output, context) =>
        handleValidate(world, request, context),
    }),
    ListVolumes: method({
      changing: false,
      handler: (request: ListVolumesRequest__Output, context) => handleList(world, request, context),
    }),
    ControllerGetVolume: method({
      changing: false,
      handler: (request: ControllerGetVolumeRequest__Output, context) => handleGet(world, request, context),
    }),
    GetCapacity: method({
      changing: false,
      handler: (request: GetCapacityRequest__Output, context) => handleCapacity(world, request, context),
    }),
    ...snapshotMethods(world),
    ...healthMethods(world),
  };
}

function capabilities(): ControllerGetCapabilitiesResponse {
  return { capabilities: controllerCapabilities.map((type) => ({ rpc: { type } })) };
}

async function handleCreate(
  world: ControllerWorld,
  request: CreateVolumeRequest__Output,
  context: CallContext,
): Promise<CreateVolumeResponse> {
  const name = requiredField("name", request.name);
  const parameters = parseParameters(request.parameters, world.settings);
  const wanted = parseCapabilities(requiredCapabilities(request.volumeCapabilities, parameters.fsType));
  assertNoMutableParameters(request);
  const source = contentSource(request.volumeContentSource);
  const create = {
    name,
    range: sizeRange(request.capacityRange),
    capabilities: wanted,
    parameters,
    rawParameters: request.parameters,
    ...(source === undefined ? {} : { source }),
  };
  const { stored } = await createVolume(world, create, context);
  return {
    volume: {
      volumeId: stored.id,
      capacityBytes: String(stored.sizeBytes),
      volumeContext: volumeContext(parameters),
      contentSource: request.volumeContentSource,
    },
  };
}

function assertNoMutableParameters(request: CreateVolumeRequest__Output): void {
  if (Object.keys(request.mutableParameters).length > 0) {
    throw new VolumeError(
      "unsupported",
      "Cannot create the volume with mutable parameters as there are none",
    );
  }
}

async function handleDelete(
  world: ControllerWorld,
  request: DeleteVolumeRequest__Output,
  context: CallContext,
): Promise<DeleteVolumeResponse> {
  await deleteVolume(world, requiredVolumeId(request.volumeId), context);
  return {};
}

async function handlePublish(
  world: ControllerWorld,
  request: ControllerPublishVolumeRequest__Output,
  context: CallContext,
): Promise<ControllerPublishVolumeResponse> {
  const id = requiredVolumeId(request.volumeId);
  const nodeId = requiredField("node_id", request.nodeId);
  assertNodeId(nodeId);
  const parameters = parseVolumeContext(request.volumeContext, world.settings);
  const capability = requiredCapability(request.volumeCapability, parameters.fsType);
  const isStatic = parseStatic(request.volumeContext);
  const publish = { nodeId, capability, readOnly: request.readonly, isStatic };
  return { publishContext: await publishVolume(world, id, publish, parameters, context) };
}

async function handleUnpublish(
  world: ControllerWorld,
  request: ControllerUnpublishVolumeRequest__Output,
  context: CallContext,
): Promise<ControllerUnpublishVolumeResponse> {
  const id = requiredVolumeId(request.volumeId);
  if (request.nodeId !== "") assertNodeId(request.nodeId);
  await unpublishVolume(world, id, request.nodeId, context);
  return {};
}

async function handleExpand(
  world: ControllerWorld,
  request: ControllerExpandVolumeRequest__Output,
  context: CallContext,
): Promise<ControllerExpandVolumeResponse> {
  const id = requiredVolumeId(request.volumeId);
  const sizeBytes = await expandVolume(world, id, sizeRange(request.capacityRange), context);
  // Block volumes too: the node has to make its kernel notice the new size.
  return { capacityBytes: String(sizeBytes), nodeExpansionRequired: true };
}

async function handleValidate(
  world: ControllerWorld,
  request: ValidateVolumeCapabilitiesRequest__Output,
  context: CallContext,
): Promise<ValidateVolumeCapabilitiesResponse> {
  const id = requiredVolumeId(request.volumeId);
  const { fsType } = parseVolumeContext(request.volumeContext, world.settings);
  const requested = requiredCapabilities(request.volumeCapabilities, fsType);
  const volume = await getVolume(world, id, context);
  const reason = reasonAgainst(volume, requested);
  return reason === undefined
    ? { confirmed: { volumeCapabilities: request.volumeCapabilities } }
    : { confirmed: null, message: reason };
}

async function handleList(
  world: ControllerWorld,
  request: ListVolumesRequest__Output,
  context: CallContext,
): Promise<ListVolumesResponse> {
  const page = { token: request.startingToken, maxEntries: request.maxEntries };
  cutPage([], page, () => 0); // A token or a number that is wrong needs no router to say so.
  const volumes = await listVolumes(world, context);
  const items = volumes.map((volume) => ({ id: volume.stored.id, ...describeVolume(volume) }));
  const { items: entries, nextToken } = cutPage(
    items,
    page,
    (item) => 64 + item.status.publishedNodeIds.length * 80,
  );
  return { entries: entries.map(({ volume, status }) => ({ volume, status })), nextToken };
}

async function handleGet(
  world: ControllerWorld,
  request: ControllerGetVolumeRequest__Output,
  context: CallContext,
): Promise<ControllerGetVolumeResponse> {
  const id = requiredVolumeId(request.volumeId);
  return describeVolume(await getVolume(world, id, context));
}

async function handleCapacity(
  world: ControllerWorld,
  request: GetCapacityRequest__Output,
  context: CallContext,
): Promise<GetCapacityResponse> {
  const { basePath, fsType } = parseParameters(request.parameters, world.settings);
  if (request.volumeCapabilities.length > 0) {
    parseCapabilities(requiredCapabilities(request.volumeCapabilities, fsType));
  }
  const capacity = await getCapacity(world, basePath, context);
  return {
    availableCapacity: String(capacity.availableBytes),
    maximumVolumeSize: { value: String(capacity.maximumVolumeBytes) },
    minimumVolumeSize: { value: String(capacity.minimumVolumeBytes) },
  };
}

function describeVolume(volume: OwnedVolume) {
  return {
    volume: { volumeId: volume.stored.id, capacityBytes: String(volume.stored.sizeBytes) },
    status: { publishedNodeIds: [...publishedNodeIds(volume)] },
  };
}
