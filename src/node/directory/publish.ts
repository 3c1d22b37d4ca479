import { withDeadline } from "../../async/deadline.ts";
import { type AccessMode, isReadOnlyMode } from "../../volume/model/capabilities.ts";
import { parseDirectoryContext } from "../../volume/model/directory/context.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { MountEntry } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isNfs, isSameFolder, serverPath } from "../../volume/rules/nfs_mounts.ts";
import { mountsAt } from "../../volume/rules/mounts_at.ts";
import { withUndo } from "../stage/undo.ts";
import type { DirectoryNodeDeps } from "./deps.ts";
import { parseNfsOptions } from "./nfs_options.ts";
import type { SharedMounts } from "./shared_mounts.ts";

/** The fields of NodePublishVolume. */
export interface PublishDirectoryRequest {
  readonly volumeId: string;
  readonly stagingPath: string;
  readonly targetPath: string;
  readonly mode: AccessMode;
  readonly mountFlags: readonly string[];
  readonly readOnly: boolean;
  readonly volumeContext: Readonly<Record<string, string>>;
}

/** How long a server may take to answer before a publish fails. */
const answerMs = 10_000;

/**
 * Binds a staged directory to a target, read-only where that is asked for.
 *
 * @throws {VolumeError} precondition when the directory is not staged, or its access mode allows one target only;
 *   exists-incompatible when the target is in use in another way; unavailable when the server does not answer
 */
export async function publishDirectory(
  deps: DirectoryNodeDeps,
  shares: SharedMounts,
  request: PublishDirectoryRequest,
  context: CallContext,
): Promise<void> {
  const readOnly = isReadOnlyPublish(request);
  const target = await deps.paths.mountPoint(request.targetPath);
  const staging = await deps.paths.mountPoint(request.stagingPath);
  assertApart(request, target, staging, await shares.folder());
  const table = await deps.nfs.table();
  const staged = getStaged(table, staging, request);
  await assertAnswers(deps, staging, request, context);
  assertMayPublish(table, staged, { target, staging, folder: await shares.folder() }, request);
  await withUndo(deps.clock, context, async (undo) => {
    if (mountsAt(table, target).length === 0) {
      await makeTarget(deps, request, context);
      undo.add("remove the target", () => deps.paths.removeEmptyFolder(request.targetPath));
      undo.add("unmount", (undoing) => deps.nfs.unmount(target, undoing));
      if (readOnly) await shares.bindReadOnly(staging, target, context);
      else await deps.nfs.bind(staging, target, context);
    }
    await assertPublished(deps, target, staged, { ...request, readOnly });
  });
}

function isReadOnlyPublish({ readOnly, mode, mountFlags }: PublishDirectoryRequest): boolean {
  return readOnly || isReadOnlyMode(mode) || parseNfsOptions(mountFlags).readOnly;
}

function assertApart(
  { volumeId, targetPath }: PublishDirectoryRequest,
  target: string,
  staging: string,
  folder: string,
): void {
  const isOver = (one: string, other: string) => one === other || one.startsWith(`${other}/`);
  if (![staging, folder].some((path) => isOver(target, path) || isOver(path, target))) return;
  throw new VolumeError(
    "invalid",
    `Cannot publish the volume because its target overlaps another path of the driver: volume=${volumeId} ` +
      `path=${targetPath}`,
  );
}

function getStaged(
  table: readonly MountEntry[],
  staging: string,
  { volumeId, stagingPath, volumeContext }: PublishDirectoryRequest,
): MountEntry {
  const { path } = parseDirectoryContext(volumeContext);
  const staged = mountsAt(table, staging).at(-1);
  if (staged !== undefined && isNfs(staged) && serverPath(staged) === path) return staged;
  const state = staged === undefined
    ? "it is not staged"
    : `another thing is staged: source=${staged.source}`;
  throw new VolumeError(
    "precondition",
    `Cannot publish the volume because at its staging path ${state}: volume=${volumeId} path=${stagingPath}`,
  );
}

/** A pod must not start on a share that does not answer, or whose directory was deleted. */
async function assertAnswers(
  deps: DirectoryNodeDeps,
  staging: string,
  { volumeId }: PublishDirectoryRequest,
  context: CallContext,
): Promise<void> {
  const late = new VolumeError(
    "unavailable",
    `Cannot publish the volume because its server does not answer: volume=${volumeId}`,
  );
  await withDeadline(deps.clock, context, answerMs, late, (on) => deps.paths.info(staging, on));
}

/**
 * Throws when the target has something else, or the access mode allows no further one (CSI specification,
 * "NodePublishVolume", second table).
 */
function assertMayPublish(
  table: readonly MountEntry[],
  staged: MountEntry,
  at: { readonly target: string; readonly staging: string; readonly folder: string },
  { volumeId, targetPath, mode }: PublishDirectoryRequest,
): void {
  const there = mountsAt(table, at.target).at(-1);
  if (there !== undefined && !isSameFolder(there, staged)) {
    throw new VolumeError(
      "exists-incompatible",
      `Cannot publish the volume because something else is mounted at the target: volume=${volumeId} ` +
        `path=${targetPath} type=${there.filesystem} source=${there.source}`,
    );
  }
  if (mode !== "single-node-single-writer") return;
  const isOther = ({ mountPoint }: MountEntry) =>
    mountPoint !== at.target && mountPoint !== at.staging && !mountPoint.startsWith(`${at.folder}/`);
  const other = table.find((entry) => isSameFolder(entry, staged) && isOther(entry));
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

async function assertPublished(
  deps: DirectoryNodeDeps,
  target: string,
  staged: MountEntry,
  { volumeId, targetPath, readOnly }: PublishDirectoryRequest,
): Promise<void> {
  const top = mountsAt(await deps.nfs.table(), target).at(-1);
  if (top === undefined || !isSameFolder(top, staged)) {
    throw new VolumeError(
      "identity-mismatch",
      `Cannot use the mount because it differs from the request: volume=${volumeId} path=${targetPath} ` +
        `source=${top?.source} wanted=${staged.source}`,
    );
  }
  const isReadOnly = top.mountOptions.includes("ro");
  if (isReadOnly === readOnly) return;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot publish the volume because it is published there in another way: volume=${volumeId} path=${targetPath} ` +
      `readonly=${isReadOnly} asked=${readOnly}`,
  );
}
