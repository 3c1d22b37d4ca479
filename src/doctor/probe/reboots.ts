import { type Question, unanswered } from "./question.ts";

/** How late disks come back. A probe reboots nothing. */
export const rebootsQuestion: Question = {
  names: ["disksLate"],
  ask: () =>
    Promise.resolve(unanswered(
      "disksLate",
      "it shows only when the router boots: measure from its first answer until the last file disk is listed",
    )),
};
