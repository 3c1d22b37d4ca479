import { VolumeError } from "../../volume/errors.ts";
import type { RouterState, StoredVolume } from "../../volume/model/inventory.ts";
import { filePrefixOf } from "../../volume/model/image_names.ts";
import { type OwnedVolume, parseComment } from "../../volume/model/record.ts";
import type { Commit, NewVolume } from "../../volume/ports/store.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import { ifSent, sent } from "../../volume/ports/not_sent.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";
import { whyNotDone } from "../not_done.ts";
import { cutComment, isCut } from "./comment.ts";
import { commit } from "./commit.ts";
import { premisesOf } from "./premises.ts";
import type { Change, NotDone, Room } from "./steps.ts";

/** A disk that is to be added, with what it needs. */
export interface Addition {
  readonly volume: NewVolume;
  /** Undefined where it takes none. */
  readonly room?: Room;
  /**
   * Puts right what is left of it where the disk was not added. Throws nothing.
   *
   * @param isRefused whether the router has said so
   */
  readonly mend?: (isRefused: boolean) => Promise<void>;
}

/** A volume that this call has added, and what was read back with it. */
export interface AddedVolume {
  readonly volume: OwnedVolume;
  readonly after: RouterState;
  /** Every disk; undefined when only its own was read back. */
  readonly all: readonly StoredVolume[] | undefined;
}

/** A disk that is added. What is left to be done while its room is still promised gives the answer. */
export function adding<Answer>(
  addition: Addition,
  finish: (added: AddedVolume) => Promise<Answer>,
): Change<Answer> {
  return {
    kind: "add",
    volume: undefined,
    room: addition.room,
    send: async (call, _verb, { isAssumed, all }) => {
      const end = isAssumed
        ? await addedUnread(call, addition)
        : await added(call, addition, all !== undefined);
      return typeof end === "object" ? { answer: await finish(end) } : end;
    },
  };
}

/**
 * Adds a disk where a read has shown none, and returns it as read back. One command.
 *
 * @param readsAll whether every other disk is read back with it
 * @throws {VolumeError} unavailable when the router did not add it; busy when it shows another disk than was added;
 * precondition when it cuts comments
 */
async function added(
  call: ControllerCall,
  { volume: wanted, mend }: Addition,
  readsAll: boolean,
): Promise<AddedVolume> {
  const write = { add: wanted, ...readsAll ? { readsAll } as const : {} };
  let outcome: Commit | undefined;
  try {
    outcome = sent(await commit(call, undefined, write));
  } finally {
    const isAdded = outcome?.after.volume?.comment === wanted.comment;
    if (!isAdded) await mend?.(outcome?.refusal !== undefined);
  }
  await assertWholeComment(call, wanted, outcome.after.volume);
  return addedIn(call, wanted, outcome);
}

/**
 * The same where nobody has looked, if the router finds no disk and no file of it. One command, or none. Without the disk, only
 * a read can show what to do next. Where the router may still add it, the next attempt finds it, or the late command finds the
 * disk of that attempt.
 *
 * @throws {VolumeError} busy when the router shows another disk than was added; precondition when it cuts comments
 */
async function addedUnread(
  call: ControllerCall,
  { volume: wanted }: Addition,
): Promise<AddedVolume | NotDone> {
  const { cluster, settleMs } = call.settings;
  const filePrefix = filePrefixOf(wanted.id, cluster);
  const premises = premisesOf("add", { disk: undefined, filePrefix, settleMs, location: wanted.location });
  if (premises === undefined) return "never";
  const outcome = ifSent(await commit(call, undefined, { add: wanted, filePrefix }, premises));
  if (outcome === undefined) return "never";
  const { volume: stored, foreign } = outcome.after;
  // It may be a volume with data, of whose record a person has left the beginning.
  if (stored !== undefined && isOfThisAttempt(stored.comment, wanted.comment)) {
    await assertWholeComment(call, wanted, stored);
  }
  if (stored?.comment === wanted.comment) return addedIn(call, wanted, outcome);
  // In a slot that is taken it adds nothing later either.
  const isTaken = stored !== undefined || foreign !== undefined;
  return isTaken || outcome.ended ? "never" : "perhaps";
}

function addedIn(call: ControllerCall, wanted: NewVolume, outcome: Commit): AddedVolume {
  const volume = assertAdded(call, wanted, outcome);
  call.memory.wrote(volume.stored);
  call.memory.known.noteLatestEpoch(volume.stored, 0);
  return { volume, after: outcome.after, all: outcome.after.all };
}

function assertAdded(
  deps: ControllerDeps,
  plan: NewVolume,
  { after: { volume: stored }, refusal }: Commit,
): OwnedVolume {
  const { id, location: { path }, imported } = plan;
  if (imported && stored?.comment !== plan.comment) {
    const reason = whyNotDone(refusal);
    throw new VolumeError(
      "unavailable",
      `Cannot import the file because ${reason}: volume=${id} path=${path}`,
    );
  }
  if (stored === undefined) {
    const parent = plan.subvolume?.parent?.path.split("/").at(-1);
    const hint = parent === undefined
      ? ""
      : ` (no other subvolume may be called ${parent}, no volume have its label, nor its volume change meanwhile)`;
    const reason = whyNotDone(refusal, hint);
    throw new VolumeError("unavailable", `Cannot create the volume because ${reason}: volume=${id}`);
  }
  const volume = assertOwned(stored, deps.settings.cluster, imported ? "import" : "create");
  // Its caller looks whether the file was taken as it was, and takes the record away again.
  if (imported) return volume;
  const asPlanned = stored.comment === plan.comment && stored.imagePath === path &&
    (plan.sizeBytes === undefined || stored.sizeBytes === plan.sizeBytes) && !stored.exported;
  if (asPlanned) return volume;
  throw new VolumeError(
    "busy",
    `Cannot create the volume because the router shows another disk than the added one: volume=${id} ` +
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
  { id, location, comment, imported }: NewVolume,
  stored: StoredVolume | undefined,
): Promise<void> {
  // The image of an imported one was there before.
  if (imported) return;
  if (stored === undefined || stored.imagePath !== location.path || !isCut(stored.comment, comment)) return;
  const filePrefix = filePrefixOf(id, call.settings.cluster);
  sent(await commit(call, stored, { id, remove: location, filePrefix }));
  throw cutComment("create", id, stored.comment.length);
}
