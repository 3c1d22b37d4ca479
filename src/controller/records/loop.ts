import { VolumeError } from "../../volume/errors.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import type { ControllerCall } from "../deps.ts";
import { changedMeanwhile } from "../not_done.ts";
import type { StepKind } from "./confirmations.ts";
import { graceLeftMs, waitForGrace } from "./grace.ts";
import { type Came, cameTo, type Change, type NotDone, type Room, type Step } from "./steps.ts";
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
  /** A disk is added, goes, becomes a volume or ceases to be one. */
  | Change<Answer>;

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
    // A person may have turned the last export on meanwhile: its node would write beside the next one.
    if ("need" in decision || await hasWaited(call, verb, decision)) {
      view = await read("need" in decision ? decision.need : "own");
      continue;
    }
    const came = await done(call, verb, view, decision);
    if (typeof came === "object" && "answer" in came) return came.answer;
    view = typeof came === "object" && came.view || await read("all");
  }
  throw changedMeanwhile(verb, id);
}

/** A decision to change something. */
type Doing<Answer> = Extract<Decision<Answer>, { readonly step: Step }> | Change<Answer>;

/** Does what is decided, and asks what comes next, once its room is counted. */
async function done<Answer extends object>(
  call: ControllerCall,
  verb: string,
  view: View,
  decision: Doing<Answer>,
): Promise<Came<Answer> | NotDone> {
  if (!("step" in decision)) {
    return await withRoom(call, decision.room, () => decision.send(call, verb, view));
  }
  const { step, next } = decision;
  const after = await withRoom(call, step.room, () => sentStep(call, verb, view, step));
  return typeof after === "object" ? cameTo(next(after), view, after.stored) : after;
}

async function sentStep(
  call: ControllerCall,
  verb: string,
  { isAssumed }: View,
  step: Step,
): Promise<OwnedVolume | NotDone> {
  return isAssumed ? await takenUnread(call, verb, step) ?? "perhaps" : await taken(call, verb, step);
}

/** Waits out the grace of the last withdrawal where the step needs that. Returns whether it had to. */
async function hasWaited<Answer>(
  call: ControllerCall,
  verb: string,
  decision: Doing<Answer>,
): Promise<boolean> {
  const { kind, volume } = changeOf(decision);
  return endsGrace[kind] && volume !== undefined && await waitForGrace(call, volume, verb);
}

/** A decision as far as the grace of the last withdrawal matters to it. */
function changeOf<Answer>(decision: Doing<Answer>): Pick<Change<Answer> | Step, "kind" | "volume"> {
  return "step" in decision ? decision.step : decision;
}

/** What came of a view that is only remembered. */
async function triedUnread<Answer extends object>(
  call: ControllerCall,
  verb: string,
  rule: Rule<Answer>,
  view: View,
): Promise<Came<Answer>> {
  const decision = await decidedBy(call, rule, view);
  if (decision === undefined || "answer" in decision || "need" in decision) return {};
  const { kind, volume } = changeOf(decision);
  // What is waited for is read first.
  if (endsGrace[kind] && volume !== undefined && graceLeftMs(call, volume) > 0) return {};
  const came = await done(call, verb, view, decision);
  return typeof came === "object" ? came : {};
}

/** Counts what is promised of a pool while it is done. Does nothing of which it is not known that there is room. */
async function withRoom<After extends object>(
  { promised }: ControllerCall,
  room: Room | undefined,
  take: () => Promise<After | NotDone>,
): Promise<After | NotDone> {
  if (room === undefined) return await take();
  const { mountPoint, bytes, isAmple = () => true } = room;
  return await promised.during<After | NotDone>(
    mountPoint,
    bytes,
    // Counted first, so that of several calls at once none overlooks another.
    async () => isAmple() ? await take() : "never",
    (after) => after === "perhaps" ? after : typeof after === "object",
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
