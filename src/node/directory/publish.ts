import { type AccessMode, isReadOnlyMode } from "../../volume/model/capabilities.ts";
import { type DirectoryContext, parseDirectoryContext } from "../../volume/model/directory/context.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { MountEntry } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isNfs, serverPath, usersOf } from "../../volume/rules/host/nfs_mounts.ts";
import { mountsAt } from "../../volume/rules/host/mounts_at.ts";
import { settled } from "../stage/settled.ts";
import { withUndo } from "../stage/undo.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import { directoryInShare } from "./in_share.ts";
import { giveOwner } from "./new_directory.ts";
import { parseNfsOptions } from "../../volume/model/directory/nfs_options.ts";
import type { SharedMounts } from "./shared_mounts.ts";

/** The fields of NodePublishVolume. */
export interface PublishDirectoryRequest {
  readonly volumeId: string;
  readonly targetPath: string;
  readonly mode: AccessMode;
  readonly mountFlags: readonly string[];
  readonly readOnly: boolean;
  readonly volumeContext: Readonly<Record<string, string>>;
}

/** What is to be at the target in the end. */
interface Wanted {
  readonly request: PublishDirectoryRequest;
  readonly directory: DirectoryContext;
  readonly readOnly: boolean;
  readonly target: string;
  /** The mount point of the share, and the folder of all shares. */
  readonly share: string;
  readonly folder: string;
}

/**
 * Publishes a directory: mounts its share unless it is mounted, and binds the directory from there to the target. There
 * is no stage, because a kubelet never unstages an NFS mount: the share, of the same device and root, looks to it like
 * another user of the staging path. A link in the share that leads elsewhere is refused before anything is at the
 * target.
 *
 * @throws {VolumeError} not-found when there is no such directory; unavailable when no server answers; precondition
 *   when the path leads over a link or to no directory, or the access mode allows one target only; unavailable when
 *   anything is at the target after a failure
 */
export async function publishDirectory(
  deps: DirectoryNodeDeps,
  shares: SharedMounts,
  request: PublishDirectoryRequest,
  context: CallContext,
): Promise<void> {
  await settledAt(deps, request.targetPath, context, () => publish(deps, shares, request, context));
}

/** Runs a publish, or the parsing of its request: a failure is final while nothing is mounted at its target. */
export async function settledAt<T>(
  deps: DirectoryNodeDeps,
  targetPath: string,
  context: CallContext,
  work: () => T | Promise<T>,
): Promise<T> {
  const isClear = async () =>
    mountsAt(await deps.nfs.table(), await deps.paths.mountPoint(targetPath)).length === 0;
  return await settled(deps.clock, context, isClear, work);
}

async function publish(
  deps: DirectoryNodeDeps,
  shares: SharedMounts,
  request: PublishDirectoryRequest,
  context: CallContext,
): Promise<void> {
  const directory = parseDirectoryContext(request.volumeContext);
  const { options, readOnly: isReadOnlyFlag } = parseNfsOptions(request.mountFlags);
  const readOnly = request.readOnly || isReadOnlyMode(request.mode) || isReadOnlyFlag;
  const folder = await shares.folder();
  const target = await deps.paths.mountPoint(request.targetPath);
  assertApart(request, target, folder);
  const nfsShare = { addresses: directory.addresses, export: directory.export, options };
  await shares.using(nfsShare, context, async (share) => {
    const wanted = { request, directory, readOnly, target, share, folder };
    const source = await directoryInShare(deps, directory, share, context);
    const table = await deps.nfs.table();
    if (isPublished(table, wanted)) return;
    assertMayPublish(table, wanted);
    await withUndo(deps.clock, context, async (undo) => {
      await makeTarget(deps, request, context);
      undo.add("remove the target", () => deps.paths.removeEmptyFolder(request.targetPath));
      undo.add("unmount", (undoing) => deps.nfs.unmount(target, undoing));
      await shares.bindPrepared(source, target, context, async (bind) => {
        assertIsDirectory(await deps.nfs.table(), bind, wanted);
        await giveOwner(deps, bind, directory, context);
        if (readOnly) await deps.nfs.makeReadOnly(bind, context);
      });
      if (!isPublished(await deps.nfs.table(), wanted)) throw lost(request);
    });
  });
}

function assertApart(
  { volumeId, targetPath }: PublishDirectoryRequest,
  target: string,
  folder: string,
): void {
  const isOver = (one: string, other: string) => one === other || one.startsWith(`${other}/`);
  if (!isOver(target, folder) && !isOver(folder, target)) return;
  throw new VolumeError(
    "invalid",
    `Cannot publish the volume because its target overlaps another path of the driver: volume=${volumeId} ` +
      `path=${targetPath}`,
  );
}

/** Whether the directory is at the target as it is asked for; throws when something else is, or it in another way. */
function isPublished(table: readonly MountEntry[], wanted: Wanted): boolean {
  const { request: { volumeId, targetPath }, target, readOnly } = wanted;
  const top = mountsAt(table, target).at(-1);
  if (top === undefined) return false;
  if (!targetsOf(table, wanted).includes(top)) {
    throw new VolumeError(
      "exists-incompatible",
      `Cannot publish the volume because something else is mounted at the target: volume=${volumeId} ` +
        `path=${targetPath} type=${top.filesystem} source=${top.source}`,
    );
  }
  const isReadOnly = top.mountOptions.includes("ro");
  if (isReadOnly === readOnly) return true;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot publish the volume because it is published there in another way: volume=${volumeId} path=${targetPath} ` +
      `readonly=${isReadOnly} asked=${readOnly}`,
  );
}

/** The binds of the directory from its share, wherever pods have them. */
function targetsOf(
  table: readonly MountEntry[],
  { directory, share, folder }: Wanted,
): readonly MountEntry[] {
  return usersOf(table, share, folder).filter((entry) => serverPath(entry) === directory.path);
}

/** Throws when the access mode allows no further target (CSI specification, "NodePublishVolume", second table). */
function assertMayPublish(table: readonly MountEntry[], wanted: Wanted): void {
  const { volumeId, mode } = wanted.request;
  if (mode !== "single-node-single-writer") return;
  const other = targetsOf(table, wanted).find(({ mountPoint }) => mountPoint !== wanted.target);
  if (other === undefined) return;
  throw new VolumeError(
    "precondition",
    `Cannot publish the volume because its access mode SINGLE_NODE_SINGLE_WRITER allows one target: volume=${volumeId} ` +
      `published at=${other.mountPoint}`,
  );
}

async function makeTarget(
  deps: DirectoryNodeDeps,
  { volumeId, targetPath }: PublishDirectoryRequest,
  context: CallContext,
): Promise<void> {
  const info = await deps.paths.info(targetPath, context);
  if (info?.kind === "directory") return;
  if (info === undefined) return await deps.paths.makeFolder(targetPath, 0o750);
  throw new VolumeError(
    "precondition",
    `Cannot publish the volume because the target is not a directory: volume=${volumeId} path=${targetPath} is=${info.kind}`,
  );
}

/** Throws when the kernel shows another folder than was asked for: a link was planted since the path was resolved. */
function assertIsDirectory(
  table: readonly MountEntry[],
  bind: string,
  { request: { volumeId }, directory }: Wanted,
): void {
  const top = mountsAt(table, bind).at(-1);
  if (top !== undefined && isNfs(top) && serverPath(top) === directory.path) return;
  throw new VolumeError(
    "identity-mismatch",
    `Cannot publish the volume because its path leads elsewhere now: volume=${volumeId} source=${top?.source} ` +
      `wanted=${directory.path}`,
  );
}

function lost({ volumeId, targetPath }: PublishDirectoryRequest): VolumeError {
  return new VolumeError(
    "unavailable",
    `Cannot find the mount that was just made: volume=${volumeId} path=${targetPath}`,
  );
}
