import { VolumeError } from "../../volume/errors.ts";
import { type Finding, type FindingListener, problem, skipped, warning } from "../../volume/model/finding.ts";
import { withNames } from "../../volume/model/name_plates.ts";
import { policyCheck, sessionsCheck } from "./access.ts";
import type { CheckSettings, RouterCheck, RouterClient } from "./check.ts";
import { clockCheck, packageCheck, versionCheck } from "./software.ts";
import { drivesCheck } from "./drives.ts";
import { firewallCheck } from "./firewall.ts";
import { poolsCheck } from "./pools.ts";
import { sharesCheck } from "./shares.ts";
import { basePathsCheck, disksCheck } from "./storage.ts";

/** All checks on a router after the login, in the order in which they are reported. */
export const routerChecks: readonly RouterCheck[] = [
  versionCheck,
  packageCheck,
  policyCheck,
  sessionsCheck,
  firewallCheck,
  clockCheck,
  poolsCheck,
  drivesCheck,
  basePathsCheck,
  sharesCheck,
  disksCheck,
];

/**
 * Runs every check; one that fails is a finding itself, and does not stop the others.
 *
 * @throws {VolumeError} cancelled when the call is
 */
export async function runRouterChecks(
  router: RouterClient,
  settings: CheckSettings,
  found: FindingListener,
): Promise<void> {
  const faulty = new Set<string>();
  for (const check of routerChecks) {
    try {
      const findings = await check.run(router, settings);
      if (findings.some(({ state }) => state === "problem")) faulty.add(check.name);
      (check.namesVolumes ? await named(findings, router, settings) : findings).forEach(found);
    } catch (error) {
      if (!VolumeError.is(error) || error.kind === "cancelled") throw error;
      const cause = causeOf(error, faulty);
      const judge = check.essential ? problem : warning;
      found(
        cause === undefined
          ? judge(check.name, `cannot be checked: ${error.message}`)
          : skipped(check.name, `not checked until the problem of ${cause} is corrected`),
      );
    }
  }
}

/** The check that has reported already why another one fails: one fault is one problem. */
function causeOf({ kind }: VolumeError, faulty: ReadonlySet<string>): string | undefined {
  if (faulty.has(packageCheck.name)) return packageCheck.name;
  return kind === "precondition" && faulty.has(versionCheck.name) ? versionCheck.name : undefined;
}

/** The findings with the names on the router's plates behind the ids of volumes. One command, where anything is wrong. */
async function named(
  findings: readonly Finding[],
  router: Pick<RouterClient, "names">,
  { cluster, basePaths }: CheckSettings,
): Promise<readonly Finding[]> {
  const isWrong = findings.some(({ state }) => state === "warning" || state === "problem");
  if (!isWrong || cluster === undefined) return findings;
  const names = await router.names(cluster, basePaths);
  return findings.map((finding) => ({ ...finding, found: withNames(finding.found, names) }));
}
