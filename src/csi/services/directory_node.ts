import type { DirectoryNode } from "../../node/directory/directory_node.ts";
import { parseDirectoryCapability } from "../../volume/model/directory_capabilities.ts";
import type { AccessMode } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type HandlerOf, method, type MethodsOf, type RequestOf } from "../server/call.ts";
import type { NodeRpcs, VolumeCapability } from "../generated/csi.ts";
import { capabilities, info, mountFlagsOf, stagingPathOf, usage } from "./node.ts";
import { requestedCapability, requiredDirectoryHandle, requiredField, requiredPath } from "./requests.ts";

type Request<Name extends keyof NodeRpcs> = RequestOf<NodeRpcs, Name>;
type Handler<Name extends keyof NodeRpcs> = HandlerOf<NodeRpcs, Name, DirectoryNode>;

/** The Node service of shared directories: see `nodeMethods()`. */
export function directoryNodeMethods(service: DirectoryNode): MethodsOf<NodeRpcs> {
  return {
    NodeGetCapabilities: method({ changing: false, handler: () => Promise.resolve(capabilities()) }),
    NodeGetInfo: method({ changing: false, handler: () => info(service) }),
    NodeStageVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeStageVolume">) => [request.volumeId, request.stagingTargetPath],
      handler: (request, context) => handleStage(service, request, context),
    }),
    NodeUnstageVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeUnstageVolume">) => [request.volumeId, request.stagingTargetPath],
      handler: (request, context) => handleUnstage(service, request, context),
    }),
    NodePublishVolume: method({
      changing: true,
      lockKey: (request: Request<"NodePublishVolume">) => [request.volumeId, request.targetPath],
      handler: (request, context) => handlePublish(service, request, context),
    }),
    NodeUnpublishVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeUnpublishVolume">) => [request.volumeId, request.targetPath],
      handler: (request, context) => handleUnpublish(service, request, context),
    }),
    NodeExpandVolume: method({
      changing: true,
      lockKey: (request: Request<"NodeExpandVolume">) => request.volumeId,
      handler: (request, context) => handleExpand(service, request, context),
    }),
    NodeGetVolumeStats: method({
      changing: false,
      handler: (request: Request<"NodeGetVolumeStats">, context) => handleStats(service, request, context),
    }),
    NodeGetVolumeHealth: method({
      changing: false,
      handler: (request: Request<"NodeGetVolumeHealth">, context) =>
        handleVolumeHealth(service, request, context),
    }),
    NodeGetStorageHealth: method({
      changing: false,
      handler: async (_request: Request<"NodeGetStorageHealth">, context) => ({
        backendHealth: [...await service.storageHealth(context)],
      }),
    }),
  };
}

const handleStage: Handler<"NodeStageVolume"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const stagingPath = requiredPath("staging_target_path", request.stagingTargetPath);
  const mode = requiredMode(request.volumeCapability);
  const mountFlags = mountFlagsOf(request.volumeCapability);
  const { volumeContext } = request;
  await service.stage({ volumeId, stagingPath, mode, mountFlags, volumeContext }, context);
  return {};
};

const handleUnstage: Handler<"NodeUnstageVolume"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const path = requiredPath("staging_target_path", request.stagingTargetPath);
  await service.unstage({ volumeId, path }, context);
  return {};
};

const handlePublish: Handler<"NodePublishVolume"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const targetPath = requiredPath("target_path", request.targetPath);
  const mode = requiredMode(request.volumeCapability);
  const stagingPath = stagingPathOf(request);
  const mountFlags = mountFlagsOf(request.volumeCapability);
  const { volumeContext, readonly: readOnly } = request;
  await service.publish(
    { volumeId, stagingPath, targetPath, mode, mountFlags, readOnly, volumeContext },
    context,
  );
  return {};
};

const handleUnpublish: Handler<"NodeUnpublishVolume"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const path = requiredPath("target_path", request.targetPath);
  await service.unpublish({ volumeId, path }, context);
  return {};
};

/** A share has the room that it has, whatever a claim says: any size is answered as asked for. */
const handleExpand: Handler<"NodeExpandVolume"> = async (service, request) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  await service.expand({ volumeId, path: requiredField("volume_path", request.volumePath) });
  return { capacityBytes: String(request.capacityRange?.requiredBytes ?? 0) };
};

const handleStats: Handler<"NodeGetVolumeStats"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const path = requiredField("volume_path", request.volumePath);
  return usage({ kind: "filesystem", stats: await service.stats({ volumeId, path }, context) });
};

/** Where the directory is mounted is not recorded: the caller's paths are looked at. */
const handleVolumeHealth: Handler<"NodeGetVolumeHealth"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const given = [
    ["staging_target_path", request.stagingTargetPath],
    ["volume_publish_path", request.volumePublishPath],
  ] as const;
  const paths = given.flatMap(([name, path]) => path === "" ? [] : [requiredPath(name, path)]);
  const { id, problems } = await service.volumeHealth({ volumeId, paths }, context);
  return { volumeHealth: { volumeId: id, healthStatuses: [...problems] } };
};

function requiredMode(capability: VolumeCapability | null): AccessMode {
  if (capability !== null) return parseDirectoryCapability(requestedCapability(capability, ""));
  throw new VolumeError(
    "invalid",
    "Cannot serve the request because a required field is missing: volume_capability",
  );
}
