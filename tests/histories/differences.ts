/** A call that two trees answer differently. */
export interface Difference {
  readonly seed: number;
  /** Its position among the calls of the schedule, from 1. */
  readonly call: number;
  /** Such as "publish: busy"; "no call" where the other tree had none. */
  readonly before: string;
  readonly after: string;
}

/**
 * Compares the answers of two trees to the same schedules. Only the first difference of a schedule counts: later ones follow
 * from it.
 *
 * @param first the seed of the first schedule
 */
export function differences(
  before: readonly (readonly string[])[],
  after: readonly (readonly string[])[],
  first: number,
): Difference[] {
  return before.flatMap((answers, index) => {
    const others = after[index] ?? [];
    const length = Math.max(answers.length, others.length);
    const at = Array.from({ length }, (_, call) => call).find((call) => answers[call] !== others[call]);
    return at === undefined ? [] : [{
      seed: first + index,
      call: at + 1,
      before: kindOf(answers[at]),
      after: kindOf(others[at]),
    }];
  });
}

/** The verb and the answer, without whom it was about. */
function kindOf(answer: string | undefined): string {
  return answer === undefined ? "no call" : answer.replace(/^(\w+) [^:]*/, "$1");
}
