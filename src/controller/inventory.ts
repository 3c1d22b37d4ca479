import { judgeOwnership } from "../volume/rules/ownership.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { FileView, Inventory, StoredFile, StoredVolume } from "../volume/model/inventory.ts";
import type { OwnedVolume } from "../volume/model/record.ts";
import type { ControllerWorld } from "./deps.ts";
import { isEarlierDriverId } from "../volume/model/ids.ts";
import { isImported } from "../volume/model/sources.ts";

/** One look at all volumes, which stands for the moment at which it began. */
export interface WideLook {
  /** See `VolumeProjection.beforeLook()`. */
  readonly turn: number;
  readonly inventory: Inventory;
  /** The volumes of this cluster whose record is whole. */
  readonly volumes: readonly OwnedVolume[];
}

/** Looks at all volumes of this cluster. One command. */
export async function lookWide(world: ControllerWorld, context: CallContext): Promise<WideLook> {
  const turn = world.projection.beforeLook();
  const inventory = await world.store.inventory(context);
  const volumes = inventory.volumes.flatMap((stored) => {
    const ownership = judgeOwnership(stored, world.settings.cluster);
    return ownership.state === "owned" ? [ownership.volume] : [];
  });
  world.withdrawals.look(volumes.map(({ stored }) => stored));
  return { turn, inventory, volumes };
}

/**
 * The files of this cluster: those whose path holds its hash, and the images of the volumes that were taken over from the
 * earlier driver or imported, whose names hold none. One command; one more for each of both where there are such volumes.
 */
export async function ownFiles(
  world: ControllerWorld,
  inventory: Inventory,
  context: CallContext,
): Promise<FileView> {
  const { cluster } = world.settings;
  const files = await world.store.files(`.${cluster}`, context);
  const isTaken = (stored: Inventory["volumes"][number]) =>
    isEarlierDriverId(stored.id) && judgeOwnership(stored, cluster).state === "owned";
  const found = inventory.volumes.some(isTaken) ? await withEarlierImages(world, files, context) : files;
  return await withImportedImages(world, found, inventory, context);
}

/**
 * The same, and every image that has the earlier driver's form of name, whoever has a disk of it. Two commands; more where
 * there are imported volumes.
 */
export async function ownAndEarlierFiles(
  world: ControllerWorld,
  inventory: Inventory,
  context: CallContext,
): Promise<FileView> {
  const files = await world.store.files(`.${world.settings.cluster}`, context);
  return await withImportedImages(
    world,
    await withEarlierImages(world, files, context),
    inventory,
    context,
  );
}

/** The image of a volume that was imported; undefined for any other disk. */
export function importedImage(stored: StoredVolume, cluster: string): string | undefined {
  const ownership = judgeOwnership(stored, cluster);
  const isOne = ownership.state === "owned" && isImported(ownership.volume.record);
  return isOne ? stored.imagePath : undefined;
}

async function withImportedImages(
  world: ControllerWorld,
  files: FileView,
  { volumes }: Inventory,
  context: CallContext,
): Promise<FileView> {
  const paths = volumes.flatMap((stored) => importedImage(stored, world.settings.cluster) ?? []);
  if (paths.length === 0) return files;
  const { files: images } = await world.store.filesAt([...new Set(paths)], context);
  return { ...files, files: [...files.files, ...images] };
}

async function withEarlierImages(
  world: ControllerWorld,
  files: FileView,
  context: CallContext,
): Promise<FileView> {
  const images = (await world.store.files("/pvc-", context)).files.filter(isEarlierImage);
  return { ...files, files: [...files.files, ...images] };
}

function isEarlierImage({ path, directory }: StoredFile): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return !directory && name.endsWith(".img") && isEarlierDriverId(name.slice(0, -".img".length));
}
