import type { NewVolume, VolumeChange } from "../volume/ports.ts";
import { type Fragment, joined, ros } from "./command.ts";
import { fileName } from "./queries.ts";

/**
 * Adds a disk, after its folder where that is to be made. The router looks again whether the folder is there: of
 * several first volumes at once only one makes it, and none fails.
 *
 * Never exported, and never mounted by the router: it mounts any file system that it recognises in a disk unless told
 * not to, also one that a node has just made.
 */
export function addStatements(volume: NewVolume): Fragment[] {
  const add =
    ros`/disk add type=${"file"} slot=${volume.id} file-path=${volume.imagePath} file-size=${volume.sizeBytes} mount-filesystem=${false} nvme-tcp-export=${false} comment=${volume.comment}`;
  if (volume.makeFolder === undefined) return [add];
  const folder = fileName(volume.makeFolder);
  const make = ros`/file add type=${"directory"} name=${folder}`;
  return [ros`:if ([:len [/file find where name=${folder}]] = 0) do={${make}}`, add];
}

/**
 * Changes a disk whose comment is still exactly `expectedComment`: whether anything matched shows only in what is read
 * back. One statement, so that an export is never off in between. No change is no statement.
 */
export function changeStatements(id: string, expectedComment: string, change: VolumeChange): Fragment[] {
  const settings: Fragment[] = [];
  if (change.export === false) settings.push(ros`nvme-tcp-export=${false}`);
  if (change.sizeBytes !== undefined) settings.push(ros`file-size=${change.sizeBytes}`);
  if (change.comment !== undefined) settings.push(ros`comment=${change.comment}`);
  if (change.export !== undefined && change.export !== false) {
    const { nqn, port } = change.export;
    settings.push(
      ros`nvme-tcp-export=${true} nvme-tcp-server-port=${port} nvme-tcp-server-nqn=${nqn}`,
    );
  }
  if (settings.length === 0) return [];
  return [ros`/disk set ${ownDisk(id, expectedComment)} ${joined(settings, " ")}`];
}

/**
 * Removes a disk whose comment is still exactly `expectedComment` (none when that is undefined), and then the image:
 * the router itself looks first whether any disk is left in that slot or on that image.
 */
export function removeStatements(
  id: string,
  expectedComment: string | undefined,
  imagePath: string,
): Fragment[] {
  const removeFile = ros`/file remove [find where name=${fileName(imagePath)}]`;
  const ifUnused =
    ros`:if ([:len [/disk find where slot=${id} or file-path=${imagePath}]] = 0) do={${removeFile}}`;
  if (expectedComment === undefined) return [ifUnused];
  return [ros`/disk remove ${ownDisk(id, expectedComment)}`, ifUnused];
}

function ownDisk(id: string, expectedComment: string): Fragment {
  return ros`[find where slot=${id} and comment=${expectedComment}]`;
}
