import { type FilesystemType, formatCapabilities, type VolumeCapabilities } from "../model/capabilities.ts";
import { usableBytes } from "../model/encryption.ts";
import { epochZero } from "../model/epoch.ts";
import { VolumeError } from "../errors.ts";
import { nameDigest, poolOf, volumeIdFor } from "../model/ids/ids.ts";
import { baseOf, filePrefixOf, isImageOf } from "../model/image_names.ts";
import { type SubvolumeNames, withinPool } from "../model/layout.ts";
import { parseMkfsOptions } from "../model/filesystem/mkfs_options.ts";
import { assertNotForeign, assertOwned } from "./ownership.ts";
import { parametersDigest, type VolumeParameters } from "../model/parameters.ts";
import type { CreateView, Pool, VolumeView } from "../model/inventory.ts";
import type { NewVolume } from "../ports/store.ts";
import type { Random } from "../ports/system.ts";
import { formatComment, newComment, type OwnedVolume, type VolumeRecord } from "../model/record.ts";
import { formatSource, type SourceRef } from "../model/sources.ts";
import { chooseSize, formatBytes, mebibyte, sizeAnswers, type SizeRange } from "../model/sizes.ts";

/** A checked CreateVolume. */
export interface CreateRequest {
  readonly name: string;
  readonly range: SizeRange;
  readonly capabilities: VolumeCapabilities;
  readonly parameters: VolumeParameters;
  /** The parameters as given, for their digest. */
  readonly rawParameters: Readonly<Record<string, string>>;
  /** The source of its data; undefined for a blank volume. */
  readonly source?: SourceRef;
}

/** The result of a request, as far as the request alone determines it. */
export interface VolumePlan {
  readonly id: string;
  /** See `filePrefixOf()`. */
  readonly filePrefix: string;
  readonly basePath: string;
  /** The record of a blank volume. */
  readonly record: VolumeRecord;
}

/**
 * The new volume that a request describes, without the router's state.
 *
 * @throws {VolumeError} invalid or out-of-range when there can be no such volume
 */
export function planVolume(request: CreateRequest, cluster: string, random: Random): VolumePlan {
  const id = volumeIdFor(request.name);
  assertMkfsOptions(request);
  if (request.source === undefined) assertHoldsFilesystem(request, chooseSize(request.range));
  const record: VolumeRecord = {
    cluster,
    name: nameDigest(request.name),
    capabilities: formatCapabilities(request.capabilities),
    parameters: parametersDigest(request.rawParameters),
    epoch: epochZero(random),
    blankEpoch: 1,
    withdrawnAtSeconds: undefined,
    source: request.source === undefined ? undefined : formatSource(request.source),
    holders: [],
  };
  formatComment(newComment(record));
  return { id, filePrefix: filePrefixOf(id, cluster), basePath: request.parameters.basePath, record };
}

/** The smallest device that mkfs makes a file system on, in bytes; 300 MiB is the limit of mkfs.xfs since version 5.19. */
const minimumFilesystemBytes: Readonly<Record<FilesystemType, bigint>> = {
  ext4: mebibyte,
  xfs: 300n * mebibyte,
};

/**
 * Refuses a size before the volume exists at which the node could not make the file system.
 *
 * @throws {VolumeError} out-of-range when the disk leaves less than the smallest file system
 */
export function assertHoldsFilesystem(
  { capabilities: { kind, encrypted = false } }: Pick<CreateRequest, "capabilities">,
  sizeBytes: bigint,
): void {
  if (kind.access === "block") return;
  const minimum = minimumFilesystemBytes[kind.filesystem];
  const usable = usableBytes(sizeBytes, encrypted);
  if (usable >= minimum) return;
  throw new VolumeError(
    "out-of-range",
    `Cannot create the volume because ${kind.filesystem} needs ${formatBytes(minimum)}: size=${usable}; ` +
      "ask for more, or for another file system",
  );
}

/** Refuses options before the volume exists that the node would refuse when it makes the file system. */
function assertMkfsOptions({ capabilities: { kind }, parameters }: CreateRequest): void {
  if (kind.access === "mount") parseMkfsOptions(parameters.node["mkfsOptions"] ?? "", kind.filesystem);
}

/**
 * The volume that an earlier attempt of the same request made; undefined when the slot, the image and the folder are
 * free.
 *
 * @throws {VolumeError} exists-incompatible when the name was used for something else; precondition when the slot or
 *   the image belongs to another
 */
export function findCreated(
  view: Pick<VolumeView, "foreign" | "volume" | "sharers">,
  plan: VolumePlan,
  request: CreateRequest,
): OwnedVolume | undefined {
  assertNotForeign(view.foreign, "create");
  if (view.volume !== undefined) {
    const volume = assertOwned(view.volume, plan.record.cluster, "create");
    assertCompatible(volume, plan, request);
    return volume;
  }
  const sharer = view.sharers.find((volume) => isOwnPath(volume.imagePath, plan));
  if (sharer === undefined) return undefined;
  throw new VolumeError(
    "precondition",
    `Cannot create the volume because another disk uses its image: volume=${plan.id} disk=${sharer.id} ` +
      `path=${sharer.imagePath}`,
  );
}

/** The part of a read of all disks that concerns the wanted volume. */
export function slotOf(view: CreateView, { id }: Pick<VolumePlan, "id">): VolumeView {
  const { volumes, ...rest } = view;
  const volume = volumes.find((volume) => volume.id === id);
  return { ...rest, volume, sharers: volumes.filter((other) => other.id !== id) };
}

function assertCompatible(volume: OwnedVolume, plan: VolumePlan, request: CreateRequest): void {
  const { record, stored } = volume;
  const differences: string[] = [];
  if (record.name !== plan.record.name) differences.push("it was made for another name");
  if (!sizeAnswers(request.range, stored.sizeBytes) && !isUnfinishedClone(volume, request.range)) {
    differences.push(`its size is ${stored.sizeBytes}`);
  }
  const wanted = plan.record.capabilities;
  if (record.capabilities !== wanted) {
    differences.push(`it was made for ${record.capabilities}, not ${wanted}`);
  }
  if (record.parameters !== plan.record.parameters || !isOwnPath(stored.imagePath, plan)) {
    differences.push("it was made with other parameters");
  }
  if (record.source !== plan.record.source) {
    differences.push(
      `it was made from ${record.source ?? "nothing"}, not ${plan.record.source ?? "nothing"}`,
    );
  }
  if (differences.length === 0) return;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot create the volume because an existing one differs: volume=${stored.id}: ` +
      `${differences.join("; ")}`,
  );
}

/** Whether it is a clone that an earlier attempt has not grown to its size yet: it was never published. */
export function isUnfinishedClone({ record, stored }: OwnedVolume, range: SizeRange): boolean {
  return record.source !== undefined && record.epoch?.counter === 0 && stored.sizeBytes < range.requiredBytes;
}

function isOwnPath(imagePath: string, { filePrefix, basePath }: VolumePlan): boolean {
  return isImageOf(imagePath, filePrefix) && baseOf(imagePath, filePrefix) === basePath;
}

/**
 * Throws if the image exists: adding a disk on an existing file keeps its old data, which must never become a new
 * volume.
 */
export function assertNoImage(view: Pick<VolumeView, "files">, plan: VolumePlan): void {
  const image = view.files.find((file) => !file.directory && isOwnPath(file.path, plan));
  if (image === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot create the volume because its image exists without a disk: volume=${plan.id} file=${image.path} ` +
      `bytes=${image.sizeBytes}; it may hold data: put its disk's entry back, or move the file away; if nothing of it is ` +
      `needed, \`rds-csi audit --delete ${image.path}\` removes it`,
  );
}

/** The folder of new volumes, if it does not exist yet; a subvolume where the pool supports that. */
export function missingFolder(
  view: Pick<VolumeView, "files">,
  folder: string,
  pool: Pool,
  names: SubvolumeNames,
): Pick<NewVolume, "makeFolder"> {
  const known = folder === `/${poolOf(folder)}` ||
    view.files.some((file) => file.path === folder && file.directory);
  if (known) return {};
  const isNested = withinPool(folder).includes("/");
  return {
    makeFolder: { path: folder, label: isNested && names === "flat" ? undefined : pool.subvolumeLabel },
  };
}
