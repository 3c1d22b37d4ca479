import { VolumeError } from "../errors.ts";
import { isInside } from "../model/directory/handle.ts";
import type { ShareDisk, ShareView } from "../ports/directory_store.ts";
import { assertSettled } from "./absence.ts";

/**
 * The mounted disk of a share. Only while it is mounted is a directory that is not found there provably gone.
 *
 * @throws {VolumeError} unavailable while nothing is mounted there
 */
export function getShareDisk({ share }: ShareView, mountPoint: string): ShareDisk {
  if (share !== undefined) return share;
  throw new VolumeError(
    "unavailable",
    `Cannot use the share because the router has mounted no disk there: share=/${mountPoint}`,
  );
}

/**
 * Why no directory may be made on a share, in words; undefined when one may. Whoever reaches the NFS port reads and
 * writes the whole share, so images of block volumes must not lie there.
 */
export function shareProblem({ share, images }: ShareView, mountPoint: string): string | undefined {
  if (share === undefined) return `the router has mounted no disk there: share=/${mountPoint}`;
  const [image] = images;
  // Before the advice to share it, which would open the images at once.
  if (image !== undefined) {
    return `it holds images of block volumes, which everybody who reaches the NFS port could read and overwrite: ` +
      `share=/${mountPoint} images=${images.length} first=${image}; use a pool of its own for directories`;
  }
  if (share.isShared) return undefined;
  return `the router does not share it over NFS: share=/${mountPoint}; type on the router: ` +
    `/disk set [find slot="${share.slot}"] nfs-sharing=yes`;
}

/**
 * @param settleMs how long after its boot a router may still list more disks, whose images may lie on the share
 * @throws {VolumeError} unavailable while the share is not mounted, or a disk may be missing; precondition when a person
 *   has to change it first
 */
export function assertShareUsable(view: ShareView, mountPoint: string, settleMs: number): ShareDisk {
  assertSettled(view, settleMs);
  const share = getShareDisk(view, mountPoint);
  const problem = shareProblem(view, mountPoint);
  if (problem === undefined) return share;
  throw new VolumeError("precondition", `Cannot use the share because ${problem}`);
}

/**
 * Checks that removing a directory would remove nothing but its own files.
 *
 * @param settleMs as for {@linkcode assertShareUsable}
 * @throws {VolumeError} precondition when another disk is mounted in it, or a disk's image lies in it; unavailable while a
 *   disk may be missing
 */
export function assertNothingElseIn(view: ShareView, path: string, settleMs: number): void {
  assertSettled(view, settleMs);
  const { images, mountsBelow } = view;
  const mount = mountsBelow.find((one) => isInside(one, path));
  if (mount !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot delete the directory because the router has mounted another disk in it: path=${path} mounted=${mount}`,
    );
  }
  const image = images.find((one) => isInside(one, path));
  if (image === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot delete the directory because the image of a disk is in it: path=${path} image=${image}`,
  );
}
