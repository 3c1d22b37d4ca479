import { judgeOwnership } from "../volume/rules/ownership.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { FileView, Inventory, StoredFile, StoredVolume } from "../volume/model/inventory.ts";
import type { OwnedVolume } from "../volume/model/record.ts";
import type { ControllerCall, ControllerDeps } from "./deps.ts";
import { isLegacyId } from "../volume/model/ids/ids.ts";
import { isImported } from "../volume/model/sources.ts";

/** One look at all volumes, which stands for the moment at which it began. */
export interface VolumeInventory {
  /** See `VolumeProjection.beforeRead()`. */
  readonly turn: number;
  readonly inventory: Inventory;
  /** The volumes of this cluster whose record is whole. */
  readonly volumes: readonly OwnedVolume[];
}

/** Looks at all volumes of this cluster. One command. */
export async function readInventory(deps: ControllerDeps, context: CallContext): Promise<VolumeInventory> {
  const turn = deps.projection.beforeRead();
  const inventory = await deps.store.inventory(context);
  const volumes = inventory.volumes.flatMap((stored) => {
    const ownership = judgeOwnership(stored, deps.settings.cluster);
    return ownership.state === "owned" ? [ownership.volume] : [];
  });
  deps.memory.off.check(volumes.map(({ stored }) => stored));
  return { turn, inventory, volumes };
}

/**
 * The files of this cluster: those whose path holds its hash, and the images of the volumes that were taken over from the
 * legacy driver or imported, whose names hold none. One command; one more for each of both where there are such volumes.
 */
export async function ownFiles(call: ControllerCall, inventory: Inventory): Promise<FileView> {
  const { cluster } = call.settings;
  const files = await call.store.files(`.${cluster}`, call.context);
  const isTaken = (stored: Inventory["volumes"][number]) =>
    isLegacyId(stored.id) && judgeOwnership(stored, cluster).state === "owned";
  const found = inventory.volumes.some(isTaken) ? await withLegacyImages(call, files) : files;
  return await withImportedImages(call, found, inventory);
}

/**
 * The same, and every image that has the legacy driver's form of name, whoever has a disk of it. Two commands; more where
 * there are imported volumes.
 */
export async function ownAndLegacyFiles(call: ControllerCall, inventory: Inventory): Promise<FileView> {
  const files = await call.store.files(`.${call.settings.cluster}`, call.context);
  return await withImportedImages(call, await withLegacyImages(call, files), inventory);
}

/** The image of a volume that was imported; undefined for any other disk. */
export function importedImage(stored: StoredVolume, cluster: string): string | undefined {
  const ownership = judgeOwnership(stored, cluster);
  const isOne = ownership.state === "owned" && isImported(ownership.volume.record);
  return isOne ? stored.imagePath : undefined;
}

async function withImportedImages(
  call: ControllerCall,
  files: FileView,
  { volumes }: Inventory,
): Promise<FileView> {
  const paths = volumes.flatMap((stored) => importedImage(stored, call.settings.cluster) ?? []);
  if (paths.length === 0) return files;
  const { files: images } = await call.store.filesAt([...new Set(paths)], call.context);
  return { ...files, files: [...files.files, ...images] };
}

async function withLegacyImages(call: ControllerCall, files: FileView): Promise<FileView> {
  const images = (await call.store.files("/pvc-", call.context)).files.filter(isLegacyImage);
  return { ...files, files: [...files.files, ...images] };
}

function isLegacyImage({ path, directory }: StoredFile): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return !directory && name.endsWith(".img") && isLegacyId(name.slice(0, -".img".length));
}
