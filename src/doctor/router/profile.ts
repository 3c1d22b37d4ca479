import { describeNeeds } from "../../router_profile/limits.ts";
import type { RouterBehaviours } from "../../router_profile/answers.ts";
import type { RouterProfile } from "../../router_profile/profile.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
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

/** Judges whether a profile is of the RouterOS that runs: an upgrade may change what a router does. */
export function judgeProfileVersion(
  profile: Pick<RouterProfile, "version"> | undefined,
  version: string,
): readonly Finding[] {
  if (profile === undefined || profile.version === version) return [];
  const found = `it is of RouterOS ${profile.version}, and the router runs ${version}`;
  return [warning(profileName, found, routerFixes.probeAgain())];
}
