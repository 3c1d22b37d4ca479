import { VolumeError } from "../../volume/errors.ts";
import type { OwnedVolume } from "../../volume/model/record.ts";
import { outdateInDoubt } from "../change.ts";
import type { ControllerCall } from "../deps.ts";
import type { Step } from "./steps.ts";
import { taken, takenUnread } from "./take.ts";
import { assumedView, readView, type View } from "./view.ts";

/** What a rule decides. A rule changes nothing and reports nothing, as it may be asked twice. */
export type Decision<Answer> =
  /** Nothing changes. `stands` is the volume that is answered for: no change that was sent earlier may come after that. */
  | { readonly answer: Answer; readonly stands?: OwnedVolume }
  /** The volume has to be read first. */
  | { readonly need: "read" }
  /** One step, and the answer from what was read back after it. */
  | { readonly step: Step; readonly next: (after: OwnedVolume) => Answer };

/** Decides by what is known of a volume. */
export type Rule<Answer> = (view: View) => Promise<Decision<Answer>>;

/** Which volume is changed, and by which verb of a call. */
export interface About {
  readonly id: string;
  readonly verb: string;
}

/**
 * Changes a volume as the rule decides. One command for what this process remembers as the router has it, else two.
 *
 * A view that is only remembered is tried once. Where the router does not confirm it, or the rule answers by it, or throws by
 * it, the volume is read, and the rule decides again.
 *
 * @param first the view to begin with; else the remembered one, if there is one
 * @throws {VolumeError} what the rule throws by a read; busy when the record was changed after that read; unavailable when the
 * end stays unknown: the comment is then in doubt, and whoever goes on writes another one
 */
export async function changeByRule<Answer>(
  call: ControllerCall,
  { id, verb }: About,
  rule: Rule<Answer>,
  first = assumedView(call, id),
): Promise<Answer> {
  const confirmed = first?.isAssumed ? await confirmedBy(call, verb, rule, first) : undefined;
  if (confirmed !== undefined) return confirmed.answer;
  const view = first === undefined || first.isAssumed ? await readView(call, id, verb) : first;
  const decision = await rule(view);
  if ("step" in decision) return decision.next(await taken(call, verb, decision.step));
  if ("need" in decision) throw new TypeError("A rule needs no more than a read");
  if (decision.stands !== undefined) await outdateInDoubt(call, verb, decision.stands);
  return decision.answer;
}

/** The answer after a step that the router has confirmed; undefined where the volume has to be read. */
async function confirmedBy<Answer>(
  call: ControllerCall,
  verb: string,
  rule: Rule<Answer>,
  view: View,
): Promise<{ readonly answer: Answer } | undefined> {
  const decision = await decidedBy(call, rule, view);
  if (decision === undefined || !("step" in decision)) return undefined;
  const after = await takenUnread(call, verb, decision.step);
  return after && { answer: decision.next(after) };
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
