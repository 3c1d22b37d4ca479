import { VolumeError } from "../../volume/errors.ts";
import { type FindingListener, problem, warning } from "../../volume/model/finding.ts";
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
  for (const check of routerChecks) {
    try {
      (await check.run(router, settings)).forEach(found);
    } catch (error) {
      if (!VolumeError.is(error) || error.kind === "cancelled") throw error;
      const judge = check.essential ? problem : warning;
      found(judge(check.name, `cannot be checked: ${error.message}`));
    }
  }
}
