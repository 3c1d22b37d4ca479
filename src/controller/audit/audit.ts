import { isSnapshotId } from "../../volume/model/snapshots/snapshots.ts";
import { assertPoolMounted, assertSettled, assertShown } from "../../volume/rules/absence.ts";
import { judgeAudit } from "../../volume/rules/audit/audit.ts";
import { hasAge, reasonAgainstAge } from "../../volume/rules/audit/by_age.ts";
import { type AuditFinding, type ClusterUse, findingKey } from "../../volume/rules/audit/finding.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { locationOf } from "../../volume/model/layout.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { FileView, ImageLocation, Inventory } from "../../volume/model/inventory.ts";
import type { MutationOutcome } from "../../volume/ports/store.ts";
import { deleteUnowned } from "../volumes/delete.ts";
import { ownFilePrefix } from "../load.ts";
import { answered } from "../not_done.ts";
import { removeSnapshotImage } from "../snapshots/remove.ts";
import { ownAndLegacyFiles } from "../inventory.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/** What lies on the router without an owner. */
export interface Audit {
  /** Ordered by kind and id. */
  readonly findings: readonly AuditFinding[];
  /** Whether the cluster was asked, or why it could not be. */
  readonly cluster: "none" | "read" | { readonly unreadable: string };
  /** Why nothing may be deleted for its age alone; undefined when nothing speaks against it. */
  readonly reasonAgainstAge: string | undefined;
  /** The pools and disks as they were seen last. */
  readonly view: FileView & Inventory;
}

/** Options of {@linkcode auditRouter}. */
export interface AuditOptions {
  /** Whether a person vouches that nothing which no cluster was asked about is used. */
  readonly vouched: boolean;
  /** Hears what the first of the two looks has found, part of which may only be on its way. */
  readonly firstSeen?: (audit: Audit) => void;
}

/**
 * Looks for what lies on the router without an owner. It looks twice, a grace apart, and tells what was so both times: what
 * is just being made or deleted lacks one half of itself for a moment. Three commands; six when anything was found. Of a pool whose
 * row cannot be read it tells that, and judges nothing that may be on it.
 *
 * @throws {VolumeError} unavailable while absence proves nothing: after a boot, or with a pool not mounted
 */
export async function auditRouter(
  deps: ControllerDeps,
  options: AuditOptions,
  context: CallContext,
): Promise<Audit> {
  const call = { ...deps, context };
  const first = await readAround(call);
  // After the first look and before the second: what either has is in use.
  const { cluster, used } = await askCluster(deps, context);
  const scope = () => ({
    ...deps.settings,
    used,
    vouched: options.vouched && deps.clusterView === undefined,
    nowMs: deps.clock.now(),
    isCopying: (id: string) => deps.copies.find(id) !== undefined,
  });
  const audit = (view: Inventory & FileView, findings: readonly AuditFinding[]): Audit => ({
    findings,
    cluster,
    reasonAgainstAge: typeof cluster === "string"
      ? reasonAgainstAge(findings, view, scope())
      : findings.some(hasAge)
      ? `the cluster could not be asked: ${cluster.unreadable}`
      : undefined,
    view,
  });
  const before = judgeAudit(first, scope());
  if (before.length === 0) return audit(first, []);
  options.firstSeen?.(audit(first, before));
  await deps.clock.sleep(deps.settings.unexportGraceMs, context.signal);
  const view = await readAround(call);
  const seen = new Set(before.map(findingKey));
  return audit(view, judgeAudit(view, scope()).filter((one) => seen.has(findingKey(one))));
}

/** The refusal to delete findings for their age, for people. */
export function refuseByAge(reason: string): string {
  return `Cannot delete by age because ${reason}; look at each, and name what is left over with --delete`;
}

/**
 * Deletes what an audit has found, if it is still what was found: a disk by the very comment that it was judged by, a file
 * by its name, which holds this cluster's hash, and only while no disk uses it. The cluster is asked once more: an object that
 * is replaced is away for a moment.
 *
 * @throws {VolumeError} precondition when it is kept, or used by now; busy or unavailable when it is not the same any more
 */
export async function deleteOrphan(
  deps: ControllerDeps,
  finding: AuditFinding,
  { pools }: Pick<FileView, "pools">,
  context: CallContext,
): Promise<void> {
  const call = { ...deps, context };
  const { id, path, kept, kind, comment } = finding;
  if (kept !== undefined) {
    throw new VolumeError(
      "precondition",
      `Cannot delete the finding because ${kept}: kind=${kind} id=${id} path=${path}`,
    );
  }
  await assertStillUnused(deps, finding, context);
  if (comment !== undefined) return await deleteUnowned(deps, id, comment, context);
  const location = locationOf(kind === "leftover-subvolume" ? `${path}/disk.img` : path, pools);
  const { after, refusal } = await remove(call, id, location);
  assertSettled(after, deps.settings.settleMs);
  assertPoolMounted(after, path);
  if (!after.files.some((file) => file.path === path)) return;
  throw new VolumeError(
    "unavailable",
    `Cannot delete the file because it is still there: path=${path}${answered(refusal)}`,
  );
}

/** @throws {VolumeError} precondition when the cluster uses it; unavailable when it does not say */
async function assertStillUnused(
  { clusterView }: ControllerDeps,
  { id, kind }: AuditFinding,
  context: CallContext,
): Promise<void> {
  // A copy that was never finished is nobody's, whoever uses the volume.
  if (clusterView === undefined || kind === "unfinished-copy") return;
  const using = [...await clusterView.volumes(context), ...await clusterView.attachments(context)];
  const others = await clusterView.othersHandles(context);
  const snapshots = isSnapshotId(id) ? await clusterView.snapshotHandles(context) : new Set<string>();
  if (snapshots === undefined) {
    throw new VolumeError(
      "unavailable",
      `Cannot delete the snapshot because the cluster does not list the snapshots that it uses: id=${id}; a VolumeSnapshot may be in progress: try ` +
        "again",
    );
  }
  if (!using.some(({ volumeId }) => volumeId === id) && !others.has(id) && !snapshots.has(id)) return;
  throw new VolumeError(
    "precondition",
    `Cannot delete the finding because the cluster uses it now: id=${id}`,
  );
}

async function remove(
  call: ControllerCall,
  id: string,
  location: ImageLocation,
): Promise<MutationOutcome<FileView>> {
  if (isSnapshotId(id)) return await removeSnapshotImage(call, id, location);
  return await call.store.removeImage(location, ownFilePrefix(call, id), call.context);
}

async function readAround(call: ControllerCall): Promise<Inventory & FileView> {
  const { basePaths, settleMs } = call.settings;
  const inventory = await call.store.inventory(call.context);
  const files = await ownAndLegacyFiles(call, inventory);
  assertShown(files, basePaths, settleMs);
  return { ...inventory, ...files };
}

async function askCluster(
  { clusterView, notes }: ControllerDeps,
  context: CallContext,
): Promise<{ readonly cluster: Audit["cluster"]; readonly used: ClusterUse | undefined }> {
  if (clusterView === undefined) return { cluster: "none", used: undefined };
  try {
    const [volumes, attachments, others, snapshots, orphans] = await Promise.all([
      clusterView.volumes(context),
      clusterView.attachments(context),
      clusterView.othersHandles(context),
      clusterView.snapshotHandles(context),
      clusterView.unknownVolumeAttachments(context),
    ]);
    const named = snapshots === undefined ? {} : { snapshots };
    return { cluster: "read", used: { volumes, attachments, others, ...named, orphans } };
  } catch (error) {
    context.signal.throwIfAborted();
    const unreadable = messageOf(error);
    notes.warn("cannot ask the cluster for its volumes", { reason: unreadable });
    return { cluster: { unreadable }, used: undefined };
  }
}
