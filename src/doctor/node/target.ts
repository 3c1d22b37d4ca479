import type { Network, Reach } from "../../host/network.ts";
import { type Finding, fine, problem, skipped, warning } from "../../volume/model/finding.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { TargetAddress } from "../../volume/ports/ports.ts";
import type { Stash } from "../../volume/model/staging_state.ts";
import { type NodeVolume, stashOf } from "./node_volumes.ts";

const check = "nvme-target";
const connectMs = 5_000;

/** Where targets are to be looked for: what was given, separated by commas, or else what the volumes of this node name. */
export function targetsOf(
  given: { readonly nvmeAddress: string; readonly nvmePort: number },
  volumes: readonly NodeVolume[],
): readonly TargetAddress[] {
  if (given.nvmeAddress !== "") {
    return given.nvmeAddress.split(",").map((address) => ({ address, port: given.nvmePort }));
  }
  const all = volumes.map(stashOf).filter((stash) => stash !== undefined)
    .flatMap(({ addresses, port }) => addresses.map((address) => ({ address, port })));
  return [...new Map(all.map((at) => [`${at.address} ${at.port}`, at])).values()];
}

/** Whether each target answers, and offers what this node has staged. */
export async function checkTargets(
  targets: readonly TargetAddress[],
  volumes: readonly NodeVolume[],
  nqnPrefix: string,
  { network, discover }: {
    readonly network: Network;
    /** NQNs offered to this host; undefined where there is nobody to ask. */
    readonly discover: (at: TargetAddress) => Promise<readonly string[]>;
  },
): Promise<readonly Finding[]> {
  if (targets.length === 0) {
    return [skipped(check, "no address is known: nothing is staged here", "--nvme-address")];
  }
  return await Promise.all(targets.map(async (at) => {
    const staged = stagedAt(volumes, at);
    const reach = await network.reach(at.address, at.port, connectMs);
    if (reach.state !== "open") return judgeSilence(at, reach, staged);
    try {
      return judgeOffer(at, reach.ms, await discover(at), staged, nqnPrefix);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return problem(check, `${describe(at)} answers, but its discovery log cannot be read: ${reason}`);
    }
  }));
}

function stagedAt(volumes: readonly NodeVolume[], { address, port }: TargetAddress): readonly Stash[] {
  return volumes.map(stashOf).filter((stash) => stash !== undefined)
    .filter((stash) => stash.staged && stash.port === port && stash.addresses.includes(address));
}

function describe({ address, port }: TargetAddress): string {
  return `${address} port ${port}`;
}

/** A target without exports does not listen. */
function judgeSilence(
  at: TargetAddress,
  reach: Exclude<Reach, { readonly state: "open" }>,
  staged: readonly Stash[],
): Finding {
  const found = `${describe(at)} is ${reach.state}: ${reach.reason}`;
  const fix =
    "from this node's host: look at address, route, firewall and the router; rds-csi doctor --rds-address … looks at it";
  if (reach.state !== "refused" || staged.length > 0) return problem(check, found, fix);
  return warning(check, `${found}; while nothing is exported, nobody listens`, fix);
}

function judgeOffer(
  at: TargetAddress,
  ms: number,
  offered: readonly string[],
  staged: readonly Stash[],
  nqnPrefix: string,
): Finding {
  const own = offered.filter((nqn) => parseExportNqn(nqn, nqnPrefix) !== undefined);
  const found = `${describe(at)} answers in ${
    Math.round(ms)
  } ms, and offers this host ${own.length} of this driver's exports`;
  const withdrawn = staged.filter(({ nqn }) => !offered.includes(nqn)).map(({ nqn }) => nqn);
  if (withdrawn.length === 0) return fine(check, found);
  return warning(
    check,
    `${found}, but not what is staged here: ${withdrawn.join(", ")}`,
    "it was unpublished from this node, or the router was booted and is not done: rds-csi describe says which",
  );
}
