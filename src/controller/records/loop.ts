import { VolumeError } from "../../volume/errors.ts";
import type { StoredVolume, VolumeView } from "../../volume/model/inventory.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { judgeOwnership } from "../../volume/rules/ownership.ts";
import type { ControllerCall } from "../deps.ts";
import { changedMeanwhile } from "../not_done.ts";
import { added, addedUnread, type AddedVolume, type Addition } from "./add.ts";
import type { StepKind } from "./confirmations.ts";
import { graceLeftMs, waitForGrace } from "./grace.ts";
import { type Mark, marked } from "./mark.ts";
import { type Removal, removed, removedUnread } from "./remove.ts";
import type { Room, Step } from "./steps.ts";
import { outdateInDoubt, taken, takenUnread } from "./take.ts";
import { assumedView, type View } from "./view.ts";

/** What a rule decides. A rule changes no volume and reports nothing, as it may be asked several times. */
export type Decision<Answer> =
  /** Nothing changes. `stands` is the volume that is answered for: no change that was sent earlier may come after that. */
  | { readonly answer: Answer; readonly stands?: OwnedVolume }
  /** That has to be read first. */
  | { readonly need: Level }
  /** One step. What was read back after it gives the answer, or the rule is asked again. */
  | { readonly step: Step; readonly next: (after: OwnedVolume) => Answer | "again" }
  /** A disk becomes a volume, or ceases to be one. */
  | { readonly mark: Mark; readonly marked: (after: StoredVolume) => Answer | "again" }
  /** The disk goes with its image. What is left then gives the answer. */
  | { readonly removal: Removal; readonly left: (view: VolumeView) => Answer }
  /** A disk is added. What is left to be done while its room is still promised gives the answer. */
  | Adding<Answer>;

interface Adding<Answer> {
  readonly addition: Addition;
  readonly finish: (added: AddedVolume) => Promise<Answer>;
}

/** What is read: the volume, or every disk with it, as only that tells how much room there is. */
export type Level = "own" | "all";

/** Decides by what is known of a volume. */
export type Rule<Answer> = (view: View) => Promise<Decision<Answer>>;

/** Which volume is changed, and how it is known. */
export interface About {
  readonly id: string;
  /** Of the call, for messages. */
  readonly verb: string;
  /** What to begin with. @default {the remembered view, if there is one} */
  readonly first?: View | undefined;
  /** Reads the volume; a rule without steps that need room is not asked for every disk. */
  readonly read: (level: Level) => Promise<View>;
  /** What has to be mended of a volume as it was read, or as it is after a step, before the rule is asked. */
  readonly ready?: (view: View) => Promise<View>;
}

/** How often a rule is asked by a read. */
const maxTurns = 6;

/** Which steps wait until the last withdrawal is over: no rule can forget it. */
const endsGrace: Readonly<Record<StepKind, boolean>> = {
  add: false,
  begin: true,
  continue: false,
  withdraw: false,
  leave: false,
  grow: false,
  rewrite: false,
  toggle: false,
  remove: true,
  mark: false,
  release: true,
};

/**
 * Changes a volume as the rule decides. One command for what this process remembers as the router has it, else two.
 *
 * A view that is only remembered is tried once. Where the router does not confirm it, or the rule answers by it, or throws by
 * it, the volume is read, and the rule decides again. What a removal has read back of a volume that is still there is such a read.
 *
 * @throws {VolumeError} what the rule throws by a read; busy when the record was changed after that read; unavailable when the
 * end stays unknown: the comment is then in doubt, and whoever goes on writes another one
 */
export async function changeByRule<Answer extends object>(
  call: ControllerCall,
  about: About,
  rule: Rule<Answer>,
): Promise<Answer> {
  const { id, verb, read, first = assumedView(call, id), ready = (view) => Promise.resolve(view) } = about;
  const tried = first?.isAssumed ? await triedUnread(call, verb, rule, first) : { view: first };
  if ("answer" in tried) return tried.answer;
  let view = tried.view ?? await read("own");
  for (let turn = 0; turn < maxTurns; turn++) {
    // What is remembered of it would else be taken for all that it holds.
    if (view.volume !== undefined) call.memory.known.noteImage(view.volume, view);
    view = await ready(view);
    const decision = await rule(view);
    if ("answer" in decision) {
      if (decision.stands !== undefined) await outdateInDoubt(call, verb, decision.stands);
      return decision.answer;
    }
    if ("addition" in decision) {
      const answer = await made(call, view, decision);
      if (typeof answer === "object") return answer;
      view = await read("all");
      continue;
    }
    // A person may have turned the last export on meanwhile: its node would write beside the next one.
    if ("need" in decision || await hasWaited(call, verb, ending(call, decision))) {
      view = await read("need" in decision ? decision.need : "own");
      continue;
    }
    if ("removal" in decision) return decision.left(await removed(call, verb, decision.removal));
    const done = await changed(call, verb, decision);
    if (done === "no-room") {
      view = await read("all");
      continue;
    }
    if (done.answer !== "again") return done.answer;
    view = { ...view, volume: done.after };
  }
  throw changedMeanwhile(verb, id);
}

type Stepping<Answer> = Extract<Decision<Answer>, { readonly step: Step }>;
type Marking<Answer> = Extract<Decision<Answer>, { readonly mark: Mark }>;
type Removing<Answer> = Extract<Decision<Answer>, { readonly removal: Removal }>;

/** Changes a volume as it was read, and asks what comes next. */
async function changed<Answer>(
  call: ControllerCall,
  verb: string,
  decision: Stepping<Answer> | Marking<Answer>,
): Promise<{ readonly after: StoredVolume; readonly answer: Answer | "again" } | "no-room"> {
  if ("mark" in decision) {
    const after = await marked(call, verb, decision.mark);
    return { after, answer: decision.marked(after) };
  }
  const { step, next } = decision;
  const after = await withRoom(call, step.room, () => taken(call, verb, step));
  return after === "no-room" ? after : { after: after.stored, answer: next(after) };
}

/** A step as far as the grace of the last withdrawal matters to it. */
interface Ending {
  readonly kind: StepKind;
  /** Undefined for a disk that is no volume. */
  readonly volume: OwnedVolume | undefined;
}

function ending<Answer>(
  { settings }: ControllerCall,
  decision: Stepping<Answer> | Marking<Answer> | Removing<Answer>,
): Ending {
  if ("step" in decision) return decision.step;
  if ("removal" in decision) return { kind: "remove", volume: decision.removal.volume };
  const { kind, disk } = decision.mark;
  const ownership = judgeOwnership(disk, settings.cluster);
  return { kind, volume: ownership.state === "owned" ? ownership.volume : undefined };
}

/** Waits out the grace of the last withdrawal where the step needs that. Returns whether it had to. */
async function hasWaited(call: ControllerCall, verb: string, { kind, volume }: Ending): Promise<boolean> {
  return endsGrace[kind] && volume !== undefined && await waitForGrace(call, volume, verb);
}

/** What came of a view that is only remembered: an answer, or what was read; without either, the volume has to be read. */
type Tried<Answer> = { readonly answer: Answer } | { readonly view?: View };

async function triedUnread<Answer extends object>(
  call: ControllerCall,
  verb: string,
  rule: Rule<Answer>,
  view: View,
): Promise<Tried<Answer>> {
  const decision = await decidedBy(call, rule, view);
  if (decision === undefined || "answer" in decision || "need" in decision || "mark" in decision) return {};
  if ("addition" in decision) {
    const answer = await made(call, view, decision);
    return typeof answer === "object" ? { answer } : {};
  }
  const { kind, volume } = "step" in decision
    ? decision.step
    : { kind: "remove" as const, ...decision.removal };
  // What is waited for is read first.
  if (endsGrace[kind] && graceLeftMs(call, volume) > 0) return {};
  if ("removal" in decision) {
    const left = await removedUnread(call, decision.removal);
    if (left === undefined) return {};
    if (left.volume === undefined) return { answer: decision.left(left) };
    return { view: { ...left, id: view.id, isAssumed: false } };
  }
  const { step, next } = decision;
  const after = await withRoom(call, step.room, () => takenUnread(call, verb, step));
  if (after === undefined || after === "no-room") return {};
  const answer = next(after);
  return answer === "again" ? {} : { answer };
}

/** Adds a disk, and finishes it. Without an answer, every disk has to be read first, or what came of it. */
async function made<Answer extends object>(
  call: ControllerCall,
  { isAssumed, all }: View,
  { addition, finish }: Adding<Answer>,
): Promise<Answer | "no-room" | "not-added" | undefined> {
  return await withRoom(call, addition.room, async () => {
    const end = isAssumed
      ? await addedUnread(call, addition)
      : await added(call, addition, all !== undefined);
    return typeof end === "object" ? await finish(end) : end;
  });
}

/**
 * Counts what is promised of a pool while it is done. Does nothing of which it is not known that there is room. Of what came of
 * it, undefined is that the router may still do it, and a word that it certainly does not.
 */
async function withRoom<After>(
  { promised }: ControllerCall,
  room: Room | undefined,
  take: () => Promise<After>,
): Promise<After | "no-room"> {
  if (room === undefined) return await take();
  const { mountPoint, bytes, isAmple = () => true } = room;
  return await promised.during<After | "no-room">(
    mountPoint,
    bytes,
    // Counted first, so that of several calls at once none overlooks another.
    async () => isAmple() ? await take() : "no-room",
    (after) => after === undefined ? "perhaps" : typeof after === "object",
  );
}

/** What is claimed may be wrong: what a rule throws by it is thrown by a read, or not at all. */
async function decidedBy<Answer>(
  { context }: ControllerCall,
  rule: Rule<Answer>,
  view: View,
): Promise<Decision<Answer> | undefined> {
  try {
    return await rule(view);
  } catch (error) {
    context.signal.throwIfAborted();
    if (VolumeError.is(error)) return undefined;
    throw error;
  }
}
