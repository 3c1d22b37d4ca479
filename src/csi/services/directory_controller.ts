import { createDirectory } from "../../controller/directories/create.ts";
import { deleteDirectory } from "../../controller/directories/delete.ts";
import { assertOneObject } from "../../controller/one_object.ts";
import type { DirectoryDeps } from "../../controller/directories/deps.ts";
import { assertDirectory, freeOnShare } from "../../controller/directories/read.ts";
import { parseDirectoryCapability } from "../../volume/model/directory/capabilities.ts";
import { formatDirectoryContext, parseDirectoryContext } from "../../volume/model/directory/context.ts";
import { parseDirectoryHandle } from "../../volume/model/directory/handle.ts";
import { directoryNameFor } from "../../volume/model/directory/names.ts";
import { parseNfsOptions } from "../../volume/model/directory/nfs_options.ts";
import { contextOf, parseDirectoryParameters } from "../../volume/model/directory/parameters.ts";
import { assertSizeRange } from "../../volume/model/sizes.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { HandlerOf, MethodsOf, RequestOf, ResponseOf } from "../server/call.ts";
import type { ControllerRpcs, VolumeCapability } from "../generated/csi.ts";
import { mountFlagsOf, requiredCapabilities, requiredField, sizeRange } from "./requests.ts";

/** The capabilities of ControllerGetCapabilities for directories: exactly the implemented ones. */
export const directoryControllerCapabilities = [
  "CREATE_DELETE_VOLUME",
  "GET_CAPACITY",
  "EXPAND_VOLUME",
  "SINGLE_NODE_MULTI_WRITER",
] as const;

/** A volume that is listed has to have the handle that it was created with. */
const noList =
  "Cannot list the volumes because the router does not know the addresses in their handles: list the cluster's " +
  "PersistentVolumes";
const noSnapshot =
  "Cannot create a snapshot because a shared directory has none: it is a folder of the share, and no Btrfs subvolume of " +
  "its own that the router could take one of";

type Request<Name extends keyof ControllerRpcs> = RequestOf<ControllerRpcs, Name>;
type Handler<Name extends keyof ControllerRpcs> = HandlerOf<ControllerRpcs, Name, DirectoryDeps>;

/**
 * The Controller service for shared directories. Nodes mount them without being published: there is nothing to attach,
 * and nothing that could fence a node.
 */
export function directoryControllerMethods(deps: DirectoryDeps): MethodsOf<ControllerRpcs> {
  const lockKey = ({ volumeId }: { readonly volumeId: string }) =>
    parseDirectoryHandle(volumeId)?.name ?? volumeId;
  const capabilities: ResponseOf<ControllerRpcs, "ControllerGetCapabilities"> = {
    capabilities: directoryControllerCapabilities.map((type) => ({ rpc: { type } })),
  };
  return {
    ControllerGetCapabilities: { changing: false, handler: () => Promise.resolve(capabilities) },
    CreateVolume: {
      changing: true,
      lockKey: ({ name }) => name === "" ? undefined : directoryNameFor(name),
      handler: (request, context) => handleCreate(deps, request, context),
    },
    DeleteVolume: {
      changing: true,
      lockKey,
      handler: (request, context) => handleDelete(deps, request, context),
    },
    ControllerExpandVolume: {
      changing: true,
      lockKey,
      handler: (request, context) => handleExpand(deps, request, context),
    },
    ValidateVolumeCapabilities: {
      changing: false,
      handler: (request, context) => handleValidate(deps, request, context),
    },
    GetCapacity: { changing: false, handler: (request, context) => handleCapacity(deps, request, context) },
    ListVolumes: { changing: false, handler: () => Promise.reject(unimplemented(noList)) },
    CreateSnapshot: { changing: false, handler: () => Promise.reject(unimplemented(noSnapshot)) },
  };
}

const handleCreate: Handler<"CreateVolume"> = async (deps, request, context) => {
  const name = requiredField("name", request.name);
  assertCapabilities(request.volumeCapabilities);
  for (const capability of request.volumeCapabilities) parseNfsOptions(mountFlagsOf(capability));
  const parameters = parseDirectoryParameters(request.parameters, deps.settings);
  assertNothingElseWanted(request);
  for (const key of parameters.ignored) {
    deps.notes.warn("a parameter of the StorageClass has no effect", { key, requestId: context.requestId });
  }
  const created = await createDirectory(
    deps,
    { name, range: sizeRange(request.capacityRange), parameters },
    context,
  );
  return {
    volume: {
      volumeId: created.handle,
      capacityBytes: String(created.capacityBytes),
      volumeContext: formatDirectoryContext(contextOf(parameters, created.path)),
    },
  };
};

/** A static volume's directory is not this driver's: only its object goes away. */
const handleDelete: Handler<"DeleteVolume"> = async (deps, request, context) => {
  const handle = parseDirectoryHandle(requiredField("volume_id", request.volumeId));
  if (handle === undefined) return {};
  await assertOneObject(deps, request.volumeId, context);
  await deleteDirectory(deps, handle, context);
  return {};
};

/** No quota holds a directory to its size, so there is nothing to change. */
const handleExpand: Handler<"ControllerExpandVolume"> = async (deps, request, context) => {
  const handle = parseDirectoryHandle(requiredField("volume_id", request.volumeId));
  const range = sizeRange(request.capacityRange);
  assertSizeRange(range);
  if (range.requiredBytes === 0n && range.limitBytes === 0n) {
    throw new VolumeError("invalid", "Cannot expand the volume because no size is required");
  }
  if (handle !== undefined) await assertDirectory(deps, handle, context);
  const capacityBytes = String(range.requiredBytes || range.limitBytes);
  return { capacityBytes, nodeExpansionRequired: false };
};

const handleValidate: Handler<"ValidateVolumeCapabilities"> = async (deps, request, context) => {
  const handle = parseDirectoryHandle(requiredField("volume_id", request.volumeId));
  requiredCapabilities(request.volumeCapabilities);
  if (handle !== undefined) await assertDirectory(deps, handle, context);
  else assertStatic(request);
  try {
    assertCapabilities(request.volumeCapabilities);
  } catch (error) {
    if (VolumeError.is(error, "invalid")) return { confirmed: null, message: error.message };
    throw error;
  }
  return { confirmed: { volumeCapabilities: request.volumeCapabilities } };
};

/** A handle that this driver has not made is that of a static volume, or of none. */
function assertStatic({ volumeId, volumeContext }: Request<"ValidateVolumeCapabilities">): void {
  if (volumeContext["addresses"] !== undefined || volumeContext["path"] !== undefined) {
    parseDirectoryContext(volumeContext);
    return;
  }
  throw new VolumeError(
    "not-found",
    `Cannot find the directory because there is none: volume=${JSON.stringify(volumeId.slice(0, 128))}`,
  );
}

const handleCapacity: Handler<"GetCapacity"> = async (deps, request, context) => {
  parseDirectoryParameters(request.parameters, deps.settings);
  if (request.volumeCapabilities.length > 0) assertCapabilities(request.volumeCapabilities);
  const free = String(await freeOnShare(deps, context));
  return { availableCapacity: free, maximumVolumeSize: { value: free } };
};

/** @throws {VolumeError} invalid when there is none, or one that a directory cannot have */
function assertCapabilities(capabilities: readonly VolumeCapability[]): void {
  for (const capability of requiredCapabilities(capabilities)) parseDirectoryCapability(capability);
}

/** @throws {VolumeError} unsupported for a source or mutable parameters */
function assertNothingElseWanted(request: Request<"CreateVolume">): void {
  if (request.volumeContentSource !== null) {
    throw new VolumeError(
      "unsupported",
      "Cannot create the directory from a source because directories have no snapshots and no clones",
    );
  }
  if (Object.keys(request.mutableParameters).length > 0) {
    throw new VolumeError(
      "unsupported",
      "Cannot create the directory with mutable parameters because the driver has none",
    );
  }
}

/** Without the capability no sidecar makes such a call; a person's tool gets the reason. */
function unimplemented(message: string): VolumeError {
  return new VolumeError("unimplemented", message);
}
