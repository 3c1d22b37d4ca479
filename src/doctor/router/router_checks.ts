import { VolumeError } from "../../volume/errors.ts";
import { type FindingListener, problem, warning } from "../../volume/model/finding.ts";
import { policyCheck, sessionsCheck } from "./access.ts";
import type { CheckSettings, RouterCheck, RouterClient } from "./check.ts";
import { clockCheck, packageCheck, versionCheck } from "./software.ts";
import { poolsCheck } from "./pools.ts";
import { basePathsCheck, disksCheck } from "./storage.ts";

/** Everything that is looked at on a router that let the driver in, in the order in which it is reported. */
export const routerChecks: readonly RouterCheck[] = [
  versionCheck,
  packageCheck,
  policyCheck,
  sessionsCheck,
  clockCheck,
  poolsCheck,
  basePathsCheck,
  disksCheck,
];

/**
 * Runs every check; one that cannot be answered is a finding itself, and stops none behind it.
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
