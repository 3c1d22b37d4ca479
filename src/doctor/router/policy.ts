import { ros } from "../../routeros/console/command.ts";
import { resourceQuery } from "../../routeros/store/queries.ts";
import type { RouterCheck } from "./check.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";

const check = "policy";

/** A slot that no disk has: the driver makes none of this form. */
const nobody = "rds-csi-doctor-tries-nothing";

/** Whether the user may read and write. */
export const policyCheck: RouterCheck = {
  name: check,
  essential: true,
  async run(router, { user }) {
    await router.read(check, resourceQuery);
    const statement = ros`/disk set [find where slot=${nobody}] comment=${""}`;
    return [judgePolicy(await router.attempt(check, statement), user)];
  },
};

/**
 * What the answer to a change of nothing says about the user's policies.
 *
 * Some routers refuse to change nothing, so their words are looked at: a person reads the finding, and nothing is
 * decided by it.
 */
export function judgePolicy(refusal: string | undefined, user: string): Finding {
  if (refusal === undefined) return fine(check, `${user} may read and write`);
  if (/not enough permissions/i.test(refusal)) {
    return problem(
      check,
      `${user} may read but not write: ${refusal}`,
      "/user/group/add name=rds-csi policy=ssh,read,write; " +
        `/user/set [find where name="${user}"] group=rds-csi`,
    );
  }
  if (/no such item|expected item id/i.test(refusal)) return fine(check, `${user} may read and write`);
  return warning(
    check,
    `${user} may read; whether it may write cannot be told, as changing nothing was refused: ${refusal}`,
    "/user/group/print",
  );
}
