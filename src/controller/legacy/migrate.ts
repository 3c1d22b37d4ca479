import { filePrefixOf } from "../../volume/model/layout.ts";
import { assertPoolMounted, assertSettled } from "../../volume/rules/absence.ts";
import type { ClusterView, ClusterVolume, NodeAttachment } from "../../volume/ports/cluster_view.ts";
import { messageOf, VolumeError } from "../../volume/errors.ts";
import { assertOwned, judgeOwnership } from "../../volume/rules/ownership.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
import { formatComment, type OwnedVolume } from "../../volume/model/record.ts";
import {
  assertLeftByLegacyDriver,
  awaitsHolders,
  claimOf,
  epochToWrite,
  type LegacyClaim,
  migratedComment,
} from "../../volume/rules/legacy_migration.ts";
import { changeVolume, commentWith } from "../change.ts";
import { withdrawExport } from "../attachments/withdrawal.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";
import { untilDone } from "../until_done.ts";

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
  view: VolumeView,
  stored: StoredVolume,
): Promise<StoredVolume> {
  const ownership = judgeOwnership(stored, call.settings.cluster);
  if (ownership.state === "earlier-driver") {
    const known = await askWhoHas(call, stored.id, call.context);
    const claim = claimFrom(known, stored.id, call.clock.now());
    return await migrate(call, view, stored, claim);
  }
  const isOpen = ownership.state === "owned" && awaitsHolders(ownership.volume);
  if (!isOpen || call.clusterView === undefined) return stored;
  const known = await askWhoHas(call, stored.id, call.context);
  const named = known.volumes.some(({ volumeId }) => volumeId === stored.id);
  if (!named) return stored;
  return await noteHolders(call, ownership.volume, claimFrom(known, stored.id, call.clock.now()));
}

/**
 * Writes the record of a volume of the legacy driver, if the disk is beyond doubt as that has left it. One command; one more
 * when it was taken over before, and the router does not remember that: nobody has it then as it is exported.
 *
 * @param view a look at the disk, with its files and whoever shares its image
 * @throws {VolumeError} precondition on any doubt, or when the record does not fit; busy or unavailable
 */
export async function migrate(
  call: ControllerCall,
  view: VolumeView,
  stored: StoredVolume,
  claim: LegacyClaim,
): Promise<StoredVolume> {
  const { cluster, settleMs } = call.settings;
  // Another disk of the same image may come back late, and with it whoever writes through it.
  assertSettled(view, settleMs);
  assertPoolMounted(view, stored.imagePath);
  assertLeftByLegacyDriver(stored, { ...call.settings, ...view });
  const comment = formatComment(migratedComment(stored, claim, cluster, call.random));
  const taken = await writeOnly(call, stored, comment);
  return await shutOutForgotten(call, taken, claim.forgotten);
}

/** What the cluster says of a volume. @throws {VolumeError} precondition when it leaves a doubt */
export function claimFrom({ volumes, attachments }: Attachments, id: string, nowMs: number): LegacyClaim {
  const volume = volumes.find(({ volumeId }) => volumeId === id);
  if (volume !== undefined) return claimOf(volume, attachments, nowMs);
  throw undecided(id, "no PersistentVolume of this cluster names it");
}

async function noteHolders(
  call: ControllerCall,
  volume: OwnedVolume,
  { holders, forgotten }: LegacyClaim,
): Promise<StoredVolume> {
  if (holders.length === 0 && forgotten === 0) return volume.stored;
  const epoch = epochToWrite(volume.stored, forgotten);
  const written = commentWith(volume, { ...volume.record, epoch, holders });
  // A record that is as it was tells nobody apart from whoever has sent a change of it earlier.
  const isNoted = written === volume.stored.comment;
  const noted = isNoted ? volume.stored : await writeOnly(call, volume.stored, written);
  return await shutOutForgotten(call, noted, forgotten);
}

/**
 * Withdraws a volume that the router exports again as the legacy driver did, although nodes were given epochs since: whoever
 * still knocks at that name was shut out, and would write beside the one that has it.
 */
async function shutOutForgotten(
  call: ControllerCall,
  stored: StoredVolume,
  forgotten: number,
): Promise<StoredVolume> {
  if (forgotten === 0) return stored;
  const volume = assertOwned(stored, call.settings.cluster, "take over");
  const after = stored.exported ? await withdrawExport(call, volume, "take over", forgotten) : volume;
  const { id: volumeId, exported: withdrawn } = stored;
  call.events.occurred({ kind: "older-epoch", volumeId, recorded: 0, known: forgotten, withdrawn });
  return after.stored;
}

/** The export stays untouched: even setting it to what it is could be felt by whoever writes. */
async function writeOnly(call: ControllerCall, stored: StoredVolume, comment: string): Promise<StoredVolume> {
  const wanted = (after: StoredVolume) =>
    after.comment === comment && after.exported === stored.exported && after.exportNqn === stored.exportNqn;
  const after = await changeVolume(call, "take over", stored, { comment }, wanted);
  call.projection.show(stored.id, assertOwned(after, call.settings.cluster, "take over").record);
  return after;
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

/** How long all of it may take, in milliseconds. */
const sweepMs = 600_000;

/** What came of taking all of them over. */
export interface TakeOver {
  readonly taken: number;
  /** Whether another try may take more over: a call had one, or a command failed. A doubt is for a person. */
  readonly mayTakeMore: boolean;
}

/**
 * Takes over every volume of the legacy driver that a PersistentVolume of this cluster names; any other is left alone. What
 * leaves a doubt is told, and stays as it is. Nothing on the router changes but comments, and exports of which it has
 * forgotten that they were withdrawn.
 *
 * @throws {VolumeError} unavailable when the router or the cluster cannot be asked, or the router has only just booted
 */
export async function migrateAll(deps: ControllerDeps, context: CallContext): Promise<TakeOver> {
  const call = { ...deps, context };
  const { clusterView, store, settings } = deps;
  const inventory = await store.inventory(context);
  // A router that is still booting shows some of them later.
  assertSettled(inventory, settings.settleMs);
  const earlier = inventory.volumes.filter((stored) =>
    judgeOwnership(stored, settings.cluster).state === "earlier-driver"
  );
  if (clusterView === undefined || earlier.length === 0) return { taken: 0, mayTakeMore: false };
  // Once for all: whoever gets or loses one meanwhile does so by a call, which takes it over before anything else.
  const known = await readAttachments(clusterView, context);
  const named = new Set(known.volumes.map(({ volumeId }) => volumeId));
  const outcomes: Outcome[] = [];
  for (const { id } of earlier) if (named.has(id)) outcomes.push(await tryOne(call, id, known));
  return {
    taken: outcomes.filter((one) => one === "taken").length,
    mayTakeMore: outcomes.includes("later"),
  };
}

type Outcome = "taken" | "later" | "left";

async function tryOne(call: ControllerCall, id: string, known: Attachments): Promise<Outcome> {
  // A call that changes the volume takes it over itself.
  const release = call.locks.tryTake([id], "take-over");
  if (release === undefined) return "later";
  try {
    const view = await call.store.view(id, filePrefixOf(id, call.settings.cluster), call.context);
    if (!isLegacy(call, view.volume)) return "left";
    await migrate(call, view, view.volume, claimFrom(known, id, call.clock.now()));
    return "taken";
  } catch (error) {
    call.context.signal.throwIfAborted();
    const reason = messageOf(error);
    call.notes.warn("cannot take over a volume of the legacy driver", { volume: id, reason });
    return VolumeError.is(error) && error.kind !== "precondition" ? "later" : "left";
  } finally {
    release();
  }
}

function isLegacy(deps: ControllerDeps, stored: StoredVolume | undefined): stored is StoredVolume {
  return stored !== undefined && judgeOwnership(stored, deps.settings.cluster).state === "earlier-driver";
}

/** Takes over at the start what can be, trying again until the router and the cluster have answered. */
export async function migrateAtStart(deps: ControllerDeps, signal: AbortSignal): Promise<void> {
  const complaint = "cannot take over all volumes yet";
  await untilDone(
    deps,
    { name: "take-over-at-start", timeoutMs: sweepMs, complaint },
    signal,
    async (context) => {
      const { taken, mayTakeMore } = await migrateAll(deps, context);
      if (taken > 0) deps.notes.warn("took over volumes from the legacy driver", { volumes: taken });
      if (mayTakeMore) throw new VolumeError("unavailable", "some could not be taken over yet");
    },
  );
}
