import { assertPoolMounted, assertSettled } from "../../volume/rules/absence.ts";
import type { ClusterView, ClusterVolume, NodeAttachment } from "../../volume/ports/cluster_view.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { assertOwned, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import { formatComment } from "../../volume/model/record.ts";
import {
  assertLeftByLegacyDriver,
  awaitsHolders,
  claimOf,
  epochToWrite,
  type LegacyClaim,
  migratedComment,
} from "../../volume/rules/legacy_migration.ts";
import { commentWith } from "../records/comment.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import { marking } from "../records/mark.ts";
import { isExportedAs, type Step, withdrawal } from "../records/steps.ts";
import { readSlot, type View } from "../records/view.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/** Who has which volume, as the cluster's objects say. */
export interface Attachments {
  readonly volumes: readonly ClusterVolume[];
  readonly attachments: readonly NodeAttachment[];
}

/**
 * Takes a volume of the legacy driver over, for a call that is going to change it: its record is written as the cluster's
 * objects say who has it, and nothing else of it changes. Any other volume is left as it is. No command for those; else one,
 * or two, see {@linkcode migrate}.
 *
 * Until its first withdrawal a volume that nobody had is looked up once more: the legacy driver may have published it while
 * it was being replaced.
 *
 * @returns the disk as it is now
 * @throws {VolumeError} precondition when the cluster cannot be asked, or leaves a doubt
 */
export async function migrateFirst(
  call: ControllerCall,
  view: View,
  stored: StoredVolume,
): Promise<StoredVolume> {
  const { id } = stored;
  const ownership = judgeOwnership(stored, call.settings.cluster);
  const isOpen = ownership.state === "owned" && awaitsHolders(ownership.volume) &&
    call.clusterView !== undefined;
  if (ownership.state !== "earlier-driver" && !isOpen) return stored;
  const known = await askWhoHas(call, id, call.context);
  if (isOpen && !known.volumes.some(({ volumeId }) => volumeId === id)) return stored;
  return await migrate(call, view, claimFrom(known, id, call.clock.now()));
}

/** What came of it. */
interface TakenOver {
  readonly stored: StoredVolume;
  /** Whether it was withdrawn. */
  readonly withdrawn: boolean;
}

/**
 * Writes who has a volume of the legacy driver into its record, if the disk is beyond doubt as that has left it. One command; one
 * more when it was taken over before, and the router does not remember that: nobody has it then as it is exported.
 *
 * @param view a look at the disk, with its files and whoever shares its image
 * @returns the disk as it is now
 * @throws {VolumeError} precondition on any doubt, or when the record does not fit; busy or unavailable
 */
export async function migrate(call: ControllerCall, view: View, claim: LegacyClaim): Promise<StoredVolume> {
  const { id } = view;
  const about = { id, verb: "take over", first: view, read: () => readSlot(call, id) };
  const rule = (seen: View) => Promise.resolve(decideTakingOver(call, seen, claim));
  const { stored, withdrawn } = await changeByRule(call, about, rule);
  const { forgotten: known } = claim;
  if (known > 0) call.events.occurred({ kind: "older-epoch", volumeId: id, recorded: 0, known, withdrawn });
  return stored;
}

/**
 * The export stays untouched: even setting it to what it is could be felt by whoever writes. It goes off where the router exports
 * a volume again as the legacy driver did, although nodes were given epochs since: whoever still knocks at that name was shut
 * out, and would write beside the one that has it.
 */
function decideTakingOver(call: ControllerCall, view: View, claim: LegacyClaim): Decision<TakenOver> {
  const stored = view.volume!;
  const { holders, forgotten } = claim;
  const { cluster, settleMs } = call.settings;
  const next = (after: StoredVolume) => {
    call.projection.show(view.id, assertOwned(after, cluster, "take over").record);
    return forgotten === 0 ? { stored: after, withdrawn: false } : "again" as const;
  };
  if (judgeOwnership(stored, cluster).state !== "owned") {
    // Another disk of the same image may come back late, and with it whoever writes through it.
    assertSettled(view, settleMs);
    assertPoolMounted(view, stored.imagePath);
    assertLeftByLegacyDriver(stored, { ...call.settings, ...view });
    const comment = formatComment(migratedComment(stored, claim, cluster, call.random));
    return marking(call, { kind: "mark", disk: stored, comment, isDone: isExportedAs(stored) }, next);
  }
  const volume = assertOwned(stored, cluster, "take over");
  if (holders.length === 0 && forgotten === 0) return { answer: { stored, withdrawn: false } };
  const record = { ...volume.record, epoch: epochToWrite(stored, forgotten), holders };
  // A record that is as it was tells nobody apart from whoever has sent a change of it earlier.
  if (commentWith(volume, record) !== stored.comment) {
    const step: Step = { kind: "rewrite", volume, record, change: {}, isDone: isExportedAs(stored) };
    return { step, next: (after) => next(after.stored) };
  }
  if (forgotten === 0 || !stored.exported) return { answer: { stored, withdrawn: false } };
  const off = withdrawal(call, volume, forgotten);
  return { step: off, next: (after) => ({ stored: after.stored, withdrawn: true }) };
}

/** What the cluster says of a volume. @throws {VolumeError} precondition when it leaves a doubt */
export function claimFrom({ volumes, attachments }: Attachments, id: string, nowMs: number): LegacyClaim {
  const volume = volumes.find(({ volumeId }) => volumeId === id);
  if (volume !== undefined) return claimOf(volume, attachments, nowMs);
  throw undecided(id, "no PersistentVolume of this cluster names it");
}

async function askWhoHas(
  { clusterView }: ControllerDeps,
  id: string,
  context: CallContext,
): Promise<Attachments> {
  if (clusterView === undefined) throw undecided(id, "there is no cluster to ask which nodes have it");
  try {
    return await readAttachments(clusterView, context);
  } catch (error) {
    context.signal.throwIfAborted();
    const reason = messageOf(error);
    throw undecided(id, `the cluster does not say which nodes have it: ${reason}`);
  }
}

/**
 * Volumes first: an attachment of one that is not among them is another cluster's, or too young to matter.
 *
 * @throws {VolumeError} unavailable when they cannot be read; precondition when they do not tell who has a volume
 */
export async function readAttachments(cluster: ClusterView, context: CallContext): Promise<Attachments> {
  await cluster.assertAttachmentsReadable(context);
  const volumes = await cluster.volumes(context);
  return { volumes, attachments: await cluster.attachments(context) };
}

function undecided(id: string, reason: string): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot take the volume over from the legacy driver because ${reason}: volume=${id}; if no other node can have it, run: ` +
      `rds-csi adopt ${id} [--node NODE]`,
  );
}
