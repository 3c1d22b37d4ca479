import { isEarlierDriverId } from "../volume/ids.ts";
import { judgeOwnership } from "../volume/ownership.ts";
import type { CallContext, FileView, Inventory, StoredFile } from "../volume/ports.ts";
import type { ControllerWorld } from "./world.ts";

/**
 * The files of this cluster: those whose path holds its hash, and the images of the volumes that were taken over from the
 * earlier driver, whose names hold none. One command; two where there are such volumes.
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
  return inventory.volumes.some(isTaken) ? await withEarlierImages(world, files, context) : files;
}

/** The same, and every image that has the earlier driver's form of name, whoever has a disk of it. Two commands. */
export async function ownAndEarlierFiles(world: ControllerWorld, context: CallContext): Promise<FileView> {
  return await withEarlierImages(
    world,
    await world.store.files(`.${world.settings.cluster}`, context),
    context,
  );
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
