import { type Fragment, ros } from "../../routeros/console/command.ts";
import { parseRows, type Row } from "../../routeros/console/json.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type Finding, skipped, warning } from "../../volume/model/finding.ts";
import { isLegacyId } from "../../volume/model/ids/ids.ts";
import { clusterOfComment } from "../../volume/model/record.ts";
import type { CheckSettings, RouterClient } from "./check.ts";
import { routerFixes } from "./fixes.ts";

/** A disk whose export lets only listed hosts in. */
export interface ListedDisk {
  readonly slot: string;
  readonly comment: string;
  readonly hosts: readonly string[];
}

const what = "disks";
const maxNamed = 5;
const maxHosts = 3;

const hostListsQuery: Fragment =
  ros`/disk print detail as-value proplist=slot,comment,nvme-tcp-server-allow-host-name where type=${"file"} and nvme-tcp-server-allow-host-name~${"."}`;

/**
 * Reads which volumes have a list of hosts, and judges that. One command.
 *
 * @throws {VolumeError} cancelled when the call is
 */
export async function checkHostLists(
  router: Pick<RouterClient, "read">,
  settings: Pick<CheckSettings, "cluster">,
): Promise<readonly Finding[]> {
  try {
    const rows = parseRows(await router.read(what, hostListsQuery), "list of hosts");
    const disks: ListedDisk[] = [];
    const odd: Finding[] = [];
    for (const row of rows) {
      try {
        disks.push(listedDiskOf(row));
      } catch (error) {
        odd.push(skipFor(error));
      }
    }
    return [...judgeHostLists(disks, settings), ...odd.slice(0, maxNamed)];
  } catch (error) {
    return [skipFor(error)];
  }
}

/** @throws {VolumeError} what is no failure to read the router */
function skipFor(error: unknown): Finding {
  if (!VolumeError.is(error, "unavailable")) throw error;
  return skipped(what, `cannot judge whom the exports let in: ${error.message}`);
}

function listedDiskOf(row: Row): ListedDisk {
  return {
    slot: row.text("slot"),
    comment: row.text("comment", ""),
    hosts: row.texts("nvme-tcp-server-allow-host-name"),
  };
}

/** One finding for each volume with a list of hosts, and one for those that are too many to name. */
export function judgeHostLists(
  disks: readonly ListedDisk[],
  { cluster }: Pick<CheckSettings, "cluster">,
): readonly Finding[] {
  const listed = disks.filter(({ hosts }) => hosts.length > 0).filter(({ slot, comment }) => {
    const owner = clusterOfComment(comment);
    return owner === undefined ? isLegacyId(slot) : cluster === undefined || owner === cluster;
  });
  const findings = listed.slice(0, maxNamed).map(({ slot, hosts }) =>
    warning(
      what,
      `${slot} has a list of hosts, which this driver sets on no disk: ` +
        `a node that is not in it cannot connect: ${named(hosts)}`,
      routerFixes.hostList(slot),
    )
  );
  const rest = listed.length - findings.length;
  return rest === 0 ? findings : [...findings, warning(what, `${rest} more volumes have a list of hosts`)];
}

function named(hosts: readonly string[]): string {
  const rest = hosts.length - maxHosts;
  return hosts.slice(0, maxHosts).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
