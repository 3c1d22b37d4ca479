import { formatCapabilities, type VolumeCapabilities } from "./capabilities.ts";
import { epochZero } from "./epoch.ts";
import { VolumeError } from "./errors.ts";
import { imagePath, nameDigest, parentFolder, poolOf, volumeIdFor } from "./ids.ts";
import { parseMkfsOptions } from "./mkfs_options.ts";
import { assertNotForeign, assertOwned, type OwnedVolume } from "./ownership.ts";
import { parametersDigest, type VolumeParameters } from "./parameters.ts";
import type { CreateView, NewVolume, Random } from "./ports.ts";
import { formatComment, newComment } from "./record.ts";
import { chooseSize, sizeAnswers, type SizeRange } from "./sizes.ts";

/** A checked CreateVolume. */
export interface CreateRequest {
  readonly name: string;
  readonly range: SizeRange;
  readonly capabilities: VolumeCapabilities;
  readonly parameters: VolumeParameters;
  /** The parameters as they were given, for their digest. */
  readonly rawParameters: Readonly<Record<string, string>>;
}

/** What creating has to do. */
export type CreateDecision =
  /** It exists and is exactly what was asked for. */
  | { readonly action: "exists"; readonly volume: OwnedVolume }
  | { readonly action: "add"; readonly volume: NewVolume };

/** The new volume that a request describes, whatever the router has. */
export function planVolume(request: CreateRequest, cluster: string, random: Random): NewVolume {
  const id = volumeIdFor(request.name);
  assertMkfsOptions(request);
  return {
    id,
    imagePath: imagePath(request.parameters.basePath, id, cluster),
    sizeBytes: chooseSize(request.range),
    comment: formatComment(newComment({
      cluster,
      name: nameDigest(request.name),
      capabilities: formatCapabilities(request.capabilities),
      parameters: parametersDigest(request.rawParameters),
      epoch: epochZero(random),
      blankEpoch: 1,
      withdrawnAtSeconds: undefined,
      source: undefined,
      holders: [],
    })),
  };
}

/** What the node would refuse when it is about to make the file system is refused before there is a volume. */
function assertMkfsOptions({ capabilities: { kind }, parameters }: CreateRequest): void {
  if (kind.access === "mount") parseMkfsOptions(parameters.node["mkfsOptions"] ?? "", kind.filesystem);
}

/**
 * Decides what creating a volume takes.
 *
 * @throws {VolumeError} exists-incompatible when the name was used for something else; precondition when the slot, the
 * file or the folder is somebody else's
 */
export function decideCreate(
  view: CreateView,
  plan: NewVolume,
  request: CreateRequest,
  cluster: string,
): CreateDecision {
  assertNotForeign(view.foreign, "create");
  const stored = view.volumes.find((volume) => volume.id === plan.id);
  if (stored !== undefined) {
    const volume = assertOwned(stored, cluster, "create");
    assertCompatible(volume, plan, request);
    return { action: "exists", volume };
  }
  const sharer = view.volumes.find((volume) => volume.imagePath === plan.imagePath);
  if (sharer !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot create the volume as another disk uses its image: volume=${plan.id} disk=${sharer.id} path=${plan.imagePath}`,
    );
  }
  assertNoImage(view, plan);
  return { action: "add", volume: { ...plan, ...missingFolder(view, plan) } };
}

function assertCompatible(volume: OwnedVolume, plan: NewVolume, request: CreateRequest): void {
  const { record, stored } = volume;
  const differences: string[] = [];
  if (record.name !== nameDigest(request.name)) differences.push("it was made for another name");
  if (!sizeAnswers(request.range, stored.sizeBytes)) differences.push(`its size is ${stored.sizeBytes}`);
  const wanted = formatCapabilities(request.capabilities);
  if (record.capabilities !== wanted) {
    differences.push(`it was made for ${record.capabilities}, not ${wanted}`);
  }
  if (record.parameters !== parametersDigest(request.rawParameters) || stored.imagePath !== plan.imagePath) {
    differences.push("it was made with other parameters");
  }
  if (record.source !== undefined) differences.push(`it was made from ${record.source}`);
  if (differences.length === 0) return;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot create the volume as there is one that differs: volume=${stored.id}: ${differences.join("; ")}`,
  );
}

/** Adding a disk on an existing file adopts the old data in it: such a file must never become somebody's new volume. */
function assertNoImage(view: CreateView, plan: NewVolume): void {
  const image = view.files.find((file) => file.path === plan.imagePath);
  if (image === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot create the volume as its image is there without a disk: volume=${plan.id} file=${image.path} ` +
      `bytes=${image.sizeBytes}; DeleteVolume removes it, or a person who needs its data moves it away`,
  );
}

function missingFolder(view: CreateView, plan: NewVolume): { makeFolder?: string } {
  const folder = parentFolder(plan.imagePath);
  const known = folder === `/${poolOf(folder)}` ||
    view.files.some((file) => file.path === folder && file.directory);
  return known ? {} : { makeFolder: folder };
}
