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
  const needs = [
    ["maxComment", leastComment, `a volume's record needs comments of ${leastComment} bytes`],
    ["maxSlot", leastSlot, `volume ids are slots of ${leastSlot} characters`],
    ["maxNqn", nqnBytes, `the NQN of an epoch has up to ${nqnBytes} bytes`],
    ["maxCommand", leastCommand, `commands have up to ${leastCommand} bytes`],
    ["maxPut", leastPut, `what is told of one volume has up to ${leastPut} bytes`],
  ] as const;
  return needs.flatMap(([name, least, reason]) => {
    const limit = answers[name] ?? Infinity;
    return limit < least ? [`${name} is ${limit}, and ${reason}`] : [];
  });
}
