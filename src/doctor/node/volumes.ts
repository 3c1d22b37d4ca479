import { nodeFixes } from "./fixes.ts";
import type { NodeDeps } from "../../node/deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Connection } from "../../volume/ports/node_ports.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import { type Finding, fine, problem, warning } from "../../volume/model/finding.ts";
import type { HostIdentity } from "../../volume/model/host/identity.ts";

/** This node's record of a volume, and its connections. */
export interface NodeVolume {
  readonly id: string;
  /** The state file; `damaged` says how it is. */
  readonly stagingState: StagingState | { readonly damaged: string } | undefined;
  /** Its connected subsystems, of any epoch, each with its paths. */
  readonly connected: readonly { readonly nqn: string; readonly connections: readonly Connection[] }[];
}

/** The state file if it can be used. */
export function stagingStateOf({ stagingState }: NodeVolume): StagingState | undefined {
  return stagingState !== undefined && "damaged" in stagingState ? undefined : stagingState;
}

/**
 * Every volume that has a state file or a connection on this node, by id.
 *
 * @throws {VolumeError} unavailable when the connections cannot be read
 */
export async function volumesOfNode(deps: NodeDeps, context: CallContext): Promise<readonly NodeVolume[]> {
  const connected = await deps.connector.connected(context);
  const named = connected.map((nqn) => ({ nqn, id: idOf(nqn, deps.settings.nqnPrefix) }));
  const ids = new Set([...await deps.stagingStore.ids(), ...named.map(({ id }) => id)]);
  return await Promise.all(
    [...ids].toSorted().map(async (id) => ({
      id,
      stagingState: await findStagingState(deps, id),
      connected: await Promise.all(
        named.filter((each) => each.id === id).map(async ({ nqn }) => ({
          nqn,
          connections: await deps.connector.connections(nqn, context),
        })),
      ),
    })),
  );
}

/** An NQN of the driver's prefix that names no volume represents itself. */
function idOf(nqn: string, prefix: string): string {
  return parseExportNqn(nqn, prefix)?.volumeId ?? nqn;
}

async function findStagingState(deps: NodeDeps, id: string): Promise<NodeVolume["stagingState"]> {
  try {
    return await deps.stagingStore.find(id);
  } catch (error) {
    if (VolumeError.is(error, "precondition")) return { damaged: error.message };
    throw error;
  }
}

/** Judges the identity under which targets see this node. */
export function judgeIdentity(nodeId: string, guessed: boolean, { hostNqn, hostId }: HostIdentity): Finding {
  const check = "host-nqn";
  const facts = `node=${nodeId} hostnqn=${hostNqn} hostid=${hostId}; /etc/nvme is not used`;
  // The kubelet names its node in the same way, unless it is told otherwise.
  return fine(check, guessed ? `${facts}; the node's name is this machine's, without --node-id` : facts);
}

/** Judges the driver's connections: all have to be made as this node, and to be live. */
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
          `${found}; or the node id differs`,
          nodeFixes.nodeId(),
        )
        : problem(check, found, nodeFixes.otherHost(nqn));
    }),
    ...down.map(({ name, nqn, stateName, address, port }) =>
      warning(
        check,
        `${name} is ${stateName}: nqn=${nqn} address=${address} port=${port}`,
        nodeFixes.connectionDown(),
      )
    ),
  ];
  return findings.length > 0
    ? findings
    : [fine(check, `${all.length}, all of them live and connected as this node`)];
}
