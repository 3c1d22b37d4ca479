import { ros } from "../../routeros/console/command.ts";
import { parseRows, type Row } from "../../routeros/console/json.ts";
import type { RouterCheck } from "./check.ts";
import { type Finding, fine, warning } from "../../volume/model/finding.ts";

const check = "ssh-sessions";

/** Two controllers (one leads), a command such as this one, and a person. */
const least = 4n;

/** Whether the SSH service has room for everybody who needs it. */
export const sessionsCheck: RouterCheck = {
  name: check,
  essential: false,
  async run(router) {
    const query = ros`/ip service print detail as-value where name=${"ssh"}`;
    return [judgeSessions(parseRows(await router.read(check, query), "list of services"))];
  },
};

/** What the SSH service's row says. */
export function judgeSessions(rows: readonly Row[]): Finding {
  const service = rows.find((row) => row.text("name", "") === "ssh");
  if (service === undefined || !service.hasInteger("max-sessions")) {
    return fine(check, "the router names no limit; before 7.16 there is no setting for it");
  }
  const most = service.integer("max-sessions");
  if (most >= least) return fine(check, `${most} at a time`);
  return warning(
    check,
    `${most} at a time: too few for two controllers, a command of this kind and a person`,
    '/ip/service/set [find where name="ssh"] max-sessions=20',
  );
}
