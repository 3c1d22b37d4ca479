import type { RouterBehaviours } from "./answers.ts";

/** The shortest comment that a router must keep, in bytes: less has no room for a record with a holder. */
export const minComment = 200;
/** The shortest slot name that a router must take, in characters: volume ids are as long as that. */
export const minSlot = 32;
/** The longest command that the driver sends, in bytes: a router has to take it. */
export const minCommand = 1024;
/** The most that a router must print at a time, in bytes: less has no room for one disk and the pools. */
export const minPut = 2048;

/**
 * Why this driver cannot work within a router's limits, one sentence each; empty when it can. What was not answered
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
