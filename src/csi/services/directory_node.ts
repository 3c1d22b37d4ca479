import type { DirectoryNode } from "../../node/directory/directory_node.ts";
import { parseDirectoryCapability } from "../../volume/model/directory/capabilities.ts";
import type { AccessMode } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { HandlerOf, MethodsOf } from "../server/call.ts";
import type { NodeRpcs, VolumeCapability } from "../generated/csi.ts";
import { info, mountFlagsOf, stagingPathOf, usage } from "./node.ts";
import { nodeMethodsOf } from "./node_methods.ts";
import { requestedCapability, requiredDirectoryHandle, requiredField, requiredPath } from "./requests.ts";

type Handler<Name extends keyof NodeRpcs> = HandlerOf<NodeRpcs, Name, DirectoryNode>;

/** The Node service of shared directories: see {@linkcode nodeMethodsOf}. */
export function directoryNodeMethods(service: DirectoryNode): MethodsOf<NodeRpcs> {
  return nodeMethodsOf({
    NodeGetInfo: () => info(service),
    NodeStageVolume: (request, context) => handleStage(service, request, context),
    NodeUnstageVolume: (request, context) => handleUnstage(service, request, context),
    NodePublishVolume: (request, context) => handlePublish(service, request, context),
    NodeUnpublishVolume: (request, context) => handleUnpublish(service, request, context),
    NodeExpandVolume: (request, context) => handleExpand(service, request, context),
    NodeGetVolumeStats: (request, context) => handleStats(service, request, context),
    NodeGetVolumeHealth: (request, context) => handleVolumeHealth(service, request, context),
    NodeGetStorageHealth: async (_request, context) => ({
      backendHealth: [...await service.storageHealth(context)],
    }),
  });
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
