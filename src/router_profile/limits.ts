import type { RouterAnswers } from "./answers.ts";

/** The shortest comment that a router must keep, in bytes: less has no room for a record with a holder. */
export const leastComment = 200;
/** The shortest slot name that a router must take, in characters: volume ids are as long as that. */
export const leastSlot = 32;
/** The longest command that the driver sends, in bytes: a router has to take it. */
export const leastCommand = 1024;
/** The most that a router must print at a time, in bytes: less has no room for one disk and the pools. */
export const leastPut = 2048;

/**
 * Why this driver cannot work within a router's limits, one sentence each; empty when it can. What was not answered
 * counts as enough.
 *
 * @param nqnBytes the longest NQN that the driver will give to an export, in bytes
 */
export function narrowLimits(answers: Partial<RouterAnswers>, nqnBytes: number): string[] {
  const { maxComment = Infinity, maxSlot = Infinity, maxNqn = Infinity } = answers;
  const { maxCommand = Infinity, maxPut = Infinity } = answers;
  const reasons: string[] = [];
  if (maxComment < leastComment) {
    reasons.push(
      `maxComment is ${maxComment}, and a volume's record needs comments of ${leastComment} bytes`,
    );
  }
  if (maxSlot < leastSlot) {
    reasons.push(`maxSlot is ${maxSlot}, and volume ids are slots of ${leastSlot} characters`);
  }
  if (maxNqn < nqnBytes) {
    reasons.push(`maxNqn is ${maxNqn}, and the NQN of an epoch has up to ${nqnBytes} bytes`);
  }
  if (maxCommand < leastCommand) {
    reasons.push(`maxCommand is ${maxCommand}, and commands have up to ${leastCommand} bytes`);
  }
  if (maxPut < leastPut) {
    reasons.push(`maxPut is ${maxPut}, and what is told of one volume has up to ${leastPut} bytes`);
  }
  return reasons;
}
