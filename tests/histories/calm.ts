import type { CalmCall, HistoryEvent, Verb } from "./events.ts";

type Call = Extract<HistoryEvent, { kind: "call" }>;

/** What else matters to what a call may cost. */
interface CalmFacts {
  /** Whether the volume was there when the call began. */
  readonly isThere: boolean;
  /** Whether the router was then as the call wants it. */
  readonly isSo: boolean;
  /** Whether a person's note is around its record. */
  readonly isNoted: boolean;
}

/**
 * The most commands of a call that is answered OK without a wait, as the handlers' comments say.
 *
 * @param knows whether the controller remembers what it has written last
 */
const budgets: Partial<Record<Verb, (call: Call, facts: CalmFacts, knows: boolean) => number>> = {
  create: ({ source }) => source === undefined ? 2 : 4,
  publish: (_call, _facts, knows) => knows ? 1 : 2,
  unpublish: (_, { isThere }, knows) => knows && isThere ? 1 : 2,
  expand: () => 2,
  delete: () => 2,
  snapshot: () => 3,
  deleteSnapshot: () => 2,
  list: () => 1,
};

/** What a call is never answered where nothing goes wrong: its caller could do nothing but ask again. */
const troubles: readonly string[] = ["unavailable", "busy", "deadline"];

/**
 * Returns what is wrong with the answer to a call since whose schedule's beginning nothing has gone wrong, one line each: what
 * can be done is done with the usual number of commands, and what is refused changes nothing.
 */
export function calmViolations(
  call: Call,
  error: string | undefined,
  took: CalmCall,
  facts: CalmFacts,
): readonly string[] {
  const { verb, of, node } = call;
  const what = `${verb} of ${of}${node === undefined ? "" : ` for ${node}`}`;
  const { commands, changes, remembers, waited, byHand } = took;
  if (error === undefined) {
    const most = budgets[verb]?.(call, facts, remembers) ?? Infinity;
    const isDear = !waited && !byHand && commands > most;
    if (isDear) return [`${what} took ${commands} commands, and has to do with ${most}`];
    // A create tries first, and reads what is there when that is refused.
    const isIdle = facts.isSo && verb !== "create" && !byHand && changes > 0;
    return isIdle ? [`${what} changed something, and all was as it wants it`] : [];
  }
  if (troubles.includes(error)) return [`${what} was refused as ${error}, and nothing is wrong`];
  if (verb === "publish" && error === "precondition" && !facts.isNoted) {
    return [`${what} was refused as precondition, and nothing is wrong`];
  }
  // The second one for a growth.
  const isForRoom = error === "exhausted" || error === "out-of-range";
  return isForRoom && changes > 0 ? [`${what} was refused for lack of room after a change`] : [];
}
