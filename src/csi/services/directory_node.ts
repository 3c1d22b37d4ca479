import type { DirectoryNode } from "../../node/directory/directory_node.ts";
import { parseDirectoryCapability } from "../../volume/model/directory/capabilities.ts";
import type { HandlerOf, MethodsOf } from "../server/call.ts";
import type { NodeRpcs } from "../generated/csi.ts";
import { info, usage } from "./node.ts";
import { nodeMethodsOf } from "./node_methods.ts";
import {
  isDirectoryVolumeId,
  mountFlagsOf,
  requiredCapability,
  requiredDirectoryHandle,
  requiredField,
  requiredPath,
} from "./requests.ts";

type Handler<Name extends keyof NodeRpcs> = HandlerOf<NodeRpcs, Name, DirectoryNode>;

/** The Node service of shared directories, which are published without being staged: see {@linkcode nodeMethodsOf}. */
export function directoryNodeMethods(service: DirectoryNode): MethodsOf<NodeRpcs> {
  return nodeMethodsOf({
    NodeGetInfo: () => info(service),
    NodePublishVolume: (request, context) => handlePublish(service, request, context),
    NodeUnpublishVolume: (request, context) => handleUnpublish(service, request, context),
    NodeGetVolumeStats: (request, context) => handleStats(service, request, context),
    NodeGetVolumeHealth: (request, context) => handleVolumeHealth(service, request, context),
    NodeGetStorageHealth: async (_request, context) => ({
      backendHealth: [...await service.storageHealth(context)],
    }),
  }, { isVolumeId: isDirectoryVolumeId, isFree: (path) => service.isFree(path) });
}

const handlePublish: Handler<"NodePublishVolume"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const targetPath = requiredPath("target_path", request.targetPath);
  const parse = () => parseDirectoryCapability(requiredCapability(request.volumeCapability));
  const mode = await service.parseForPublish(targetPath, context, parse);
  const mountFlags = mountFlagsOf(request.volumeCapability);
  const { volumeContext, readonly: readOnly } = request;
  await service.publish({ volumeId, targetPath, mode, mountFlags, readOnly, volumeContext }, context);
  return {};
};

const handleUnpublish: Handler<"NodeUnpublishVolume"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const path = requiredPath("target_path", request.targetPath);
  await service.unpublish({ volumeId, path }, context);
  return {};
};

const handleStats: Handler<"NodeGetVolumeStats"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const path = requiredField("volume_path", request.volumePath);
  return usage({ kind: "filesystem", stats: await service.stats({ volumeId, path }, context) });
};

/** Where the directory is mounted is not recorded: the caller's path is looked at. */
const handleVolumeHealth: Handler<"NodeGetVolumeHealth"> = async (service, request, context) => {
  const volumeId = requiredDirectoryHandle(request.volumeId);
  const given = request.volumePublishPath;
  const path = given === "" ? undefined : requiredPath("volume_publish_path", given);
  const { id, problems } = await service.volumeHealth({ volumeId, path }, context);
  return { volumeHealth: { volumeId: id, healthStatuses: [...problems] } };
};
