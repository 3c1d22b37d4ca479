import { VolumeError } from "../../volume/errors.ts";
import type { RouterState, StoredVolume } from "../../volume/model/inventory.ts";
import { type OwnedVolume, parseComment } from "../../volume/model/record.ts";
import { ifSent, type NewVolume, sent, type Unseen } from "../../volume/ports/store.ts";
import { premisesToAdd } from "../records/premises.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import { cutComment, isCut, whyNotDone } from "../change.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";
import { ownFilePrefix } from "../load.ts";
import { commit } from "../records/commit.ts";
import { discardUnmarked } from "./clone.ts";
import { discardFinished } from "./copying.ts";

/** A volume that this call has added, and what was read back with it. */
export interface AddedVolume {
  readonly volume: OwnedVolume;
  readonly after: RouterState;
  /** Every disk; undefined when only its own was read back. */
  readonly all: readonly StoredVolume[] | undefined;
}

/**
 * Adds a disk and what it needs, once, and returns it as read back: with every other disk or alone. If the disk was not
 * added, it removes the finished copy; if the router refused the disk, it removes a clone without its mark.
 *
 * Without its disk, nothing shows later what a copy is a copy of. Nothing shows either that a clone was never used,
 * once the router has taken the clone's mark and then refused the disk.
 *
 * @throws {VolumeError} unavailable when the router did not add it; busy when it shows another disk than was added
 */
export async function addVolume(
  call: ControllerCall,
  wanted: NewVolume,
  readBack: "with-all" | "alone",
): Promise<AddedVolume> {
  const { id, location, copied, comment, subvolume } = wanted;
  let added = false;
  let outcome: AddOutcome;
  try {
    outcome = readBack === "alone" ? await addAlone(call, wanted) : await addWithAll(call, wanted);
    added = outcome.stored?.comment === comment;
    if (added) rememberAdded(call, outcome.stored!);
  } finally {
    if (!added && copied !== undefined) await discardFinished(call, copied, location);
  }
  const isRefused = !added && outcome.refusal !== undefined;
  if (isRefused && subvolume?.parent !== undefined) await discardUnmarked(call, id, location);
  await assertWholeComment(call, wanted, outcome.stored);
  return { volume: assertAdded(call, wanted, outcome), after: outcome.after, all: outcome.all };
}

/** The outcome of adding a disk without a read before it. */
export interface UnseenOutcome {
  /** Set where it was added. */
  readonly added?: AddedVolume;
  /** Whether the router may still add it. */
  readonly mayStillApply: boolean;
}

/**
 * Adds a blank disk without a read before it. One command. Where it returns no `added`, only a read can show what to do
 * next. If the router adds the disk later, the next attempt to add the volume finds it, or the late
 * command finds the disk of that attempt.
 *
 * @throws {VolumeError} busy when the router shows another disk than was added; precondition when it cuts comments
 */
export async function addUnseen(
  call: ControllerCall,
  wanted: NewVolume,
  unseen: Unseen,
): Promise<UnseenOutcome> {
  const { comment } = wanted;
  const { filePrefix } = unseen;
  const premises = premisesToAdd(wanted, unseen);
  const outcome = ifSent(await commit(call, undefined, { add: wanted, filePrefix }, premises));
  if (outcome === undefined) return { mayStillApply: false };
  const { after, refusal } = outcome;
  const stored = after.volume;
  // Nobody has looked before: it may be a volume with data, of whose record a person has left the beginning.
  if (stored !== undefined && isOfThisAttempt(stored.comment, comment)) {
    await assertWholeComment(call, wanted, stored);
  }
  if (stored?.comment === comment) {
    const volume = assertAdded(call, wanted, { stored, refusal });
    rememberAdded(call, stored);
    return { added: { volume, after, all: undefined }, mayStillApply: false };
  }
  // In a slot that is taken it adds nothing later either.
  const isTaken = stored !== undefined || after.foreign !== undefined;
  return { mayStillApply: !isTaken && !outcome.ended };
}

function rememberAdded(call: ControllerCall, stored: StoredVolume): void {
  call.memory.wrote(stored);
  call.memory.known.noteLatestEpoch(stored, 0);
}

/** What was read back after adding a disk. */
interface AddOutcome extends Omit<AddedVolume, "volume"> {
  readonly stored: StoredVolume | undefined;
  readonly refusal: string | undefined;
}

async function addWithAll(call: ControllerCall, wanted: NewVolume): Promise<AddOutcome> {
  const { after, refusal } = sent(await commit(call, undefined, { add: wanted, readsAll: true }));
  return { stored: after.volume, after, all: after.all, refusal };
}

async function addAlone(call: ControllerCall, wanted: NewVolume): Promise<AddOutcome> {
  const { after, refusal } = sent(await commit(call, undefined, { add: wanted }));
  return { stored: after.volume, after, all: undefined, refusal };
}

function assertAdded(
  deps: ControllerDeps,
  plan: NewVolume,
  { stored, refusal }: Pick<AddOutcome, "stored" | "refusal">,
): OwnedVolume {
  if (stored === undefined) {
    const parent = plan.subvolume?.parent?.path.split("/").at(-1);
    const hint = parent === undefined
      ? ""
      : ` (no other subvolume may be called ${parent}, no volume have its label, nor its volume change meanwhile)`;
    const reason = whyNotDone(refusal, hint);
    throw new VolumeError("unavailable", `Cannot create the volume because ${reason}: volume=${plan.id}`);
  }
  const volume = assertOwned(stored, deps.settings.cluster, "create");
  const asPlanned = stored.comment === plan.comment && stored.imagePath === plan.location.path &&
    (plan.sizeBytes === undefined || stored.sizeBytes === plan.sizeBytes) && !stored.exported;
  if (asPlanned) return volume;
  throw new VolumeError(
    "busy",
    `Cannot create the volume because the router shows another disk than the added one: volume=${plan.id} ` +
      `size=${stored.sizeBytes} path=${stored.imagePath}; try again`,
  );
}

/** Whether what is left of a record has the random digits of the one that was written: no other call has written those. */
function isOfThisAttempt(kept: string, written: string): boolean {
  const parsed = parseComment(written);
  const nonce = parsed.state === "record" ? parsed.comment.record.epoch?.nonce : undefined;
  return nonce !== undefined && kept.includes(nonce);
}

/**
 * Removes a disk whose record was cut, with its image, because the disk would have no owner. Only for a disk that this call has
 * added.
 */
async function assertWholeComment(
  call: ControllerCall,
  { id, location, comment }: NewVolume,
  stored: StoredVolume | undefined,
): Promise<void> {
  if (stored === undefined || stored.imagePath !== location.path || !isCut(stored.comment, comment)) return;
  const filePrefix = ownFilePrefix(call, id);
  sent(await commit(call, stored, { id, remove: location, filePrefix }));
  throw cutComment("create", id, stored.comment.length);
}
