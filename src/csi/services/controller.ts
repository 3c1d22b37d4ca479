import { createVolume } from "../../controller/volumes/create.ts";
import { deleteVolume } from "../../controller/volumes/delete.ts";
import { expandVolume } from "../../controller/volumes/expand.ts";
import { publishVolume } from "../../controller/attachments/publish.ts";
import { getCapacity, getVolume, listVolumes, reasonAgainst } from "../../controller/volumes/read.ts";
import { unpublishVolume } from "../../controller/attachments/unpublish.ts";
import { parseCapabilities, parseCapability } from "../../volume/model/requested_capabilities.ts";
import { outlastsToggle } from "../../volume/model/device_layer.ts";
import { VolumeError } from "../../volume/errors.ts";
import { assertNodeId, volumeIdFor } from "../../volume/model/ids/ids.ts";
import type { VolumeIdPrefix } from "../../volume/model/ids/handles.ts";
import { usableBytes, withHeader } from "../../volume/model/encryption.ts";
import { parseMountFlags } from "../../volume/model/filesystem/mount_flags.ts";
import { isEncrypted, type OwnedVolume } from "../../volume/model/record.ts";
import {
  parseParameters,
  parseStatic,
  parseVolumeContext,
  volumeContext,
} from "../../volume/model/parameters.ts";
import { publishedNodeIds } from "../../volume/rules/publish.ts";
import type { HandlerOf, MethodsOf, RequestOf, ResponseOf } from "../server/call.ts";
import { healthMethods } from "./controller_health.ts";
import { snapshotMethods } from "./snapshots.ts";
import { chooseRouter, type Located, reaches, type Router, type Routers } from "./routers/routers.ts";
import { listPage } from "./routers/paging.ts";
import type { ControllerRpcs } from "../generated/csi.ts";
import {
  contentSource,
  mountFlagsOf,
  requiredCapabilities,
  requiredCapability,
  requiredField,
  requiredVolumeId,
  sizeRange,
} from "./requests.ts";

/** The capabilities of ControllerGetCapabilities: exactly the implemented ones. */
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

type Request<Name extends keyof ControllerRpcs> = RequestOf<ControllerRpcs, Name>;
type Handler<Name extends keyof ControllerRpcs, Subject = Located> = HandlerOf<ControllerRpcs, Name, Subject>;

/**
 * The Controller service (CSI specification, "Controller Service RPC"): each call is served by the router that it
 * concerns.
 */
export function controllerMethods(routers: Routers): MethodsOf<ControllerRpcs> {
  const lockVolume = ({ volumeId }: { readonly volumeId: string }) => routers.lockKey(volumeId);
  return {
    ControllerGetCapabilities: { changing: false, handler: () => Promise.resolve(capabilities()) },
    CreateVolume: {
      changing: true,
      lockKey: (request) => routerFor(routers, request).ids.add(volumeIdFor(request.name)),
      handler: (request, context) => {
        const router = routerFor(routers, request);
        return routers.on(router, () => handleCreate(router, request, context));
      },
    },
    DeleteVolume: { changing: true, ...routers.teardown(handleDelete, {}) },
    ControllerPublishVolume: {
      changing: true,
      lockKey: lockVolume,
      handler: routers.byVolume((at, request: Request<"ControllerPublishVolume">, context) =>
        handlePublish(at, withOwnContext(routers, at, request), context)
      ),
    },
    ControllerUnpublishVolume: { changing: true, ...routers.teardown(handleUnpublish, {}) },
    ControllerExpandVolume: { changing: true, lockKey: lockVolume, handler: routers.byVolume(handleExpand) },
    ValidateVolumeCapabilities: {
      changing: false,
      handler: routers.byVolume((at, request: Request<"ValidateVolumeCapabilities">, context) =>
        handleValidate(at, withOwnContext(routers, at, request), context)
      ),
    },
    ListVolumes: {
      changing: false,
      handler: (request, context) =>
        listPage(routers, request, {
          read: async ({ deps }) =>
            (await listVolumes(deps, context)).map((volume) => ({ id: volume.stored.id, volume })),
          describe: (ids, { volume }) => describeVolume(ids, volume),
          sizeOf: ({ volume }) => 64 + publishedNodeIds(volume).length * 80,
        }),
    },
    ControllerGetVolume: { changing: false, handler: routers.byVolume(handleGet) },
    GetCapacity: {
      changing: false,
      handler: (request, context) => handleCapacity(routers, request, context),
    },
    ...snapshotMethods(routers),
    ...healthMethods(routers),
  };
}

/** The router for a new volume, see {@linkcode chooseRouter}. */
function routerFor(routers: Routers, request: Request<"CreateVolume">): Router {
  const { requisite = [], preferred = [] } = request.accessibilityRequirements ?? {};
  const { volume, snapshot } = request.volumeContentSource ?? {};
  return chooseRouter(routers, {
    parameters: request.parameters,
    source: (volume?.volumeId ?? snapshot?.snapshotId) || undefined,
    locations: [...preferred, ...requisite].map(({ segments }) => segments),
  });
}

function withOwnContext<Req extends { readonly volumeContext: Readonly<Record<string, string>> }>(
  routers: Routers,
  { router }: Located,
  request: Req,
): Req {
  return { ...request, volumeContext: routers.contextFor(router, request.volumeContext) };
}

function capabilities(): ResponseOf<ControllerRpcs, "ControllerGetCapabilities"> {
  return { capabilities: controllerCapabilities.map((type) => ({ rpc: { type } })) };
}

const handleCreate: Handler<"CreateVolume", Router> = async ({ deps, ids, topology }, request, context) => {
  const name = requiredField("name", request.name);
  const parameters = parseParameters(request.parameters, deps.settings);
  const wanted = parseCapabilities(requiredCapabilities(request.volumeCapabilities, parameters.fsType));
  for (const capability of request.volumeCapabilities) parseMountFlags(mountFlagsOf(capability));
  assertNoMutableParameters(request);
  const source = contentSource(request.volumeContentSource, ids);
  const { encrypted } = parameters;
  const create = {
    name,
    range: withHeader(sizeRange(request.capacityRange), encrypted),
    capabilities: { ...wanted, encrypted },
    parameters,
    rawParameters: request.parameters,
    ...(source === undefined ? {} : { source }),
  };
  const { stored } = await createVolume(deps, create, context);
  return {
    volume: {
      volumeId: ids.add(stored.id),
      capacityBytes: String(usableBytes(stored.sizeBytes, encrypted)),
      volumeContext: volumeContext(parameters),
      contentSource: request.volumeContentSource,
      ...(Object.keys(topology).length === 0 ? {} : { accessibleTopology: [{ segments: { ...topology } }] }),
    },
  };
};

function assertNoMutableParameters(request: Request<"CreateVolume">): void {
  if (Object.keys(request.mutableParameters).length > 0) {
    throw new VolumeError(
      "unsupported",
      "Cannot create the volume with mutable parameters because the driver has none",
    );
  }
}

const handleDelete: Handler<"DeleteVolume"> = async ({ router: { deps }, id }, _request, context) => {
  await deleteVolume(deps, requiredVolumeId(id), context);
  return {};
};

const handlePublish: Handler<"ControllerPublishVolume"> = async (
  { router: { deps }, id },
  request,
  context,
) => {
  requiredVolumeId(id);
  const nodeId = requiredField("node_id", request.nodeId);
  assertNodeId(nodeId);
  const parameters = parseVolumeContext(request.volumeContext, deps.settings);
  const capability = parseCapability(requiredCapability(request.volumeCapability, parameters.fsType));
  const isStatic = parseStatic(request.volumeContext);
  const needsLayer = outlastsToggle(parameters.node);
  const { encrypted } = parameters;
  const publish = { nodeId, capability, readOnly: request.readonly, isStatic, needsLayer, encrypted };
  return { publishContext: await publishVolume(deps, id, publish, parameters, context) };
};

const handleUnpublish: Handler<"ControllerUnpublishVolume"> = async (
  { router: { deps }, id },
  request,
  context,
) => {
  requiredVolumeId(id);
  if (request.nodeId !== "") assertNodeId(request.nodeId);
  await unpublishVolume(deps, id, request.nodeId, context);
  return {};
};

const handleExpand: Handler<"ControllerExpandVolume"> = async (
  { router: { deps }, id },
  request,
  context,
) => {
  requiredVolumeId(id);
  const sizeBytes = await expandVolume(deps, id, sizeRange(request.capacityRange), context);
  // Block volumes too: the node has to make its kernel see the new size.
  return { capacityBytes: String(sizeBytes), nodeExpansionRequired: true };
};

const handleValidate: Handler<"ValidateVolumeCapabilities"> = async (
  { router: { deps }, id },
  request,
  context,
) => {
  requiredVolumeId(id);
  const { fsType } = parseVolumeContext(request.volumeContext, deps.settings);
  const requested = requiredCapabilities(request.volumeCapabilities, fsType);
  const volume = await getVolume(deps, id, context);
  const reason = reasonAgainst(volume, requested);
  return reason === undefined
    ? { confirmed: { volumeCapabilities: request.volumeCapabilities } }
    : { confirmed: null, message: reason };
};

const handleGet: Handler<"ControllerGetVolume"> = async (
  { router: { deps, ids }, id },
  _request,
  context,
) => {
  return describeVolume(ids, await getVolume(deps, requiredVolumeId(id), context));
};

/**
 * The capacity of the router that CreateVolume would choose for the same parameters; none if the topology leaves no
 * router.
 */
const handleCapacity: Handler<"GetCapacity", Routers> = async (routers, request, context) => {
  const location = request.accessibleTopology?.segments;
  const locations = location === undefined || Object.keys(location).length === 0 ? [] : [location];
  const nowhere = { availableCapacity: "0" };
  if (!routers.all.some((router) => reaches(router, locations))) return nowhere;
  const { parameters } = request;
  const { backend } = parameters;
  if (routers.areNamed && backend !== undefined && !reaches(routers.named(backend), locations)) {
    return nowhere;
  }
  const router = chooseRouter(routers, { parameters, source: undefined, locations });
  return await routers.on(router, () => capacityOf(router, request, context));
};

const capacityOf: Handler<"GetCapacity", Router> = async ({ deps }, request, context) => {
  const { basePath, fsType, encrypted } = parseParameters(request.parameters, deps.settings);
  if (request.volumeCapabilities.length > 0) {
    parseCapabilities(requiredCapabilities(request.volumeCapabilities, fsType));
  }
  const capacity = await getCapacity(deps, basePath, context);
  return {
    availableCapacity: String(usableBytes(capacity.availableBytes, encrypted)),
    maximumVolumeSize: { value: String(usableBytes(capacity.maximumVolumeBytes, encrypted)) },
    minimumVolumeSize: { value: String(capacity.minimumVolumeBytes) },
  };
};

function describeVolume(ids: VolumeIdPrefix, volume: OwnedVolume) {
  return {
    volume: {
      volumeId: ids.add(volume.stored.id),
      capacityBytes: String(usableBytes(volume.stored.sizeBytes, isEncrypted(volume.record))),
    },
    status: { publishedNodeIds: [...publishedNodeIds(volume)] },
  };
}
