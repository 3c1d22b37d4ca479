import { describeNeeds } from "../../router_profile/limits.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import { type Finding, fine, problem } from "../../volume/model/finding.ts";
import { routerFixes } from "./fixes.ts";

const profileName = "profile";

/**
 * Judges what a probe has found out about the router: some routers cannot be used.
 *
 * @param nqnBytes the longest NQN that the driver will give to an export, in bytes
 */
export function judgeProfile(
  { limits, sideEffects }: Partial<RouterBehaviours>,
  nqnBytes: number,
): readonly Finding[] {
  const findings: Finding[] = [];
  if (limits === "too-small") {
    const found = `its limits are too small for ${describeNeeds(nqnBytes)}: no controller starts with it`;
    findings.push(problem(profileName, found, routerFixes.otherRouter()));
  }
  if (sideEffects === "ends-sessions") {
    const found =
      "a change of one disk ends the sessions of hosts to others: no volume is created, and those that exist " +
      "go on with interruptions";
    findings.push(problem(profileName, found, routerFixes.otherRouter()));
  }
  return findings.length > 0
    ? findings
    : [fine(profileName, "this driver can work with what the probe found")];
}
