import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import type { HostIdentity } from "../../volume/model/host_identity.ts";
import type { NodeVolume } from "./node_volumes.ts";

/** Who this node is to a target. */
export function judgeIdentity(nodeId: string, guessed: boolean, { hostNqn, hostId }: HostIdentity): Finding {
  const check = "host-nqn";
  const facts = `node=${nodeId} hostnqn=${hostNqn} hostid=${hostId}; /etc/nvme is not used`;
  return guessed
    ? warning(
      check,
      `no node id is given, and this machine's name is taken for it: ${facts}`,
      "--node-id with the node's name in the cluster, if that is another one",
    )
    : fine(check, facts);
}

/** The connections of this driver's: all as this node, and all alive. */
export function judgeConnections(
  volumes: readonly NodeVolume[],
  { hostNqn }: HostIdentity,
  guessed: boolean,
): readonly Finding[] {
  const check = "connections";
  const all = volumes.flatMap(({ connected }) => connected.flatMap(({ connections }) => connections));
  const foreign = all.filter((each) => each.hostNqn !== "" && each.hostNqn !== hostNqn);
  const down = all.filter((each) => each.state !== "live");
  const findings = [
    ...foreign.map(({ name, nqn, hostNqn }) => {
      const found = `${name} is connected as another host: nqn=${nqn} hostnqn=${hostNqn}`;
      return guessed
        ? warning(
          check,
          `${found}; or the node id is another one`,
          "--node-id with the node's name in the cluster",
        )
        : problem(check, found, `if nobody uses it: nvme disconnect -d ${name}`);
    }),
    ...down.map(({ name, nqn, stateName, address, port }) =>
      warning(
        check,
        `${name} is ${stateName}: nqn=${nqn} address=${address} port=${port}`,
        "see nvme-target: while the router cannot be reached, writers wait until ctrl_loss_tmo",
      )
    ),
  ];
  return findings.length > 0 ? findings : [fine(check, `${all.length}, all of them live and as this node`)];
}
