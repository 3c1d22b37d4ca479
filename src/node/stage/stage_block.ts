import { VolumeError } from "../../volume/errors.ts";
import type { ProvenDevice } from "../../volume/ports/ports.ts";
import type { Stash } from "../../volume/model/staging_state.ts";
import { mountsAt } from "../mount_table.ts";
import type { Staging } from "./staging.ts";
import { deviceFileName, readDeviceFile } from "../connections/teardown.ts";

/**
 * Stages a raw block volume: the staging folder gets a file that names the device. Nothing on it is looked at.
 *
 * @throws {VolumeError} precondition when something is mounted at the staging path
 */
export async function stageBlock(
  { world, undo, context }: Staging,
  stash: Stash,
  device: ProvenDevice,
  point: string,
): Promise<Stash> {
  const [mounted] = mountsAt(await world.mounts.table(), point);
  if (mounted !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot stage the block volume as something is mounted at its staging path: path=${stash.stagingPath} ` +
        `type=${mounted.filesystem}`,
    );
  }
  const path = `${stash.stagingPath}/${deviceFileName}`;
  if (await readDeviceFile(world, path, context) === device.path) return stash;
  undo.add("remove the device file", () => world.paths.removeFile(path));
  await world.paths.writeFile(path, device.path, 0o600);
  return stash;
}
