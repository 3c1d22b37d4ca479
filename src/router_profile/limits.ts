import type { RouterBehaviours } from "./answers.ts";

/** The minimum length of comments that a router must keep, in bytes: less has no room for a record with a holder. */
export const minComment = 200;
/** The minimum length of slot names that a router must accept, in characters: volume ids are that long. */
export const minSlot = 32;
/** The longest command that the driver sends, in bytes: a router has to accept it. */
export const minCommand = 1024;
/** The minimum output of a router at a time, in bytes: less has no room for one disk and the pools. */
export const minPut = 2048;

/**
 * Why this driver cannot work within a router's limits, one sentence each; empty when it can. An unanswered question
 * counts as enough.
 *
 * @param nqnBytes the longest NQN that the driver will give to an export, in bytes
 */
export function narrowLimits(answers: Partial<RouterBehaviours>, nqnBytes: number): string[] {
  const needs = [
    ["maxComment", minComment, `a volume's record needs comments of ${minComment} bytes`],
    ["maxSlot", minSlot, `volume ids are slots of ${minSlot} characters`],
    ["maxNqn", nqnBytes, `the NQN of an epoch has up to ${nqnBytes} bytes`],
    ["maxCommand", minCommand, `commands have up to ${minCommand} bytes`],
    ["maxPut", minPut, `what is told of one volume has up to ${minPut} bytes`],
  ] as const;
  return needs.flatMap(([name, least, reason]) => {
    const limit = answers[name] ?? Infinity;
    return limit < least ? [`${name} is ${limit}, and ${reason}`] : [];
  });
}
