import { poll } from "../../async/poll.ts";
import type { StagingState } from "../../volume/model/staging/state.ts";
import type { DeviceMap } from "../../volume/ports/device_maps.ts";
import type { FoundDevice } from "../../volume/ports/node_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { prove } from "../connections/device.ts";
import { targetOf } from "../connections/target.ts";
import type { OfferedReads } from "../fencing/offered_reads.ts";
import type { NodeDeps } from "../deps.ts";
import { attachPath } from "./attach_path.ts";

/** How long the kernel may take to show a device after a rescan, in milliseconds. */
const scanMs = 2_000;

/** The result for a map that waits. */
export type Restored =
  /** The map is on the volume's device, which has that unique id; `isRestored` says that it was put there just now. */
  | { readonly state: "ready"; readonly uniqueId: string; readonly isRestored: boolean }
  /** Its device is away. */
  | { readonly state: "waiting"; readonly why: string }
  /** Its queueing was ended: what uses it has failed, and only a new stage helps. */
  | { readonly state: "ended"; readonly why: string };

const ended: Restored = { state: "ended", why: "its queueing was ended" };

/** A map in which I/O waits, or may wait. */
export interface WaitingMap {
  readonly map: DeviceMap;
  /** Whether I/O has made no progress, so that the path may have failed. */
  readonly isStalled: boolean;
  readonly stagingState: StagingState;
  /** What targets offer, read once for all volumes. */
  readonly reads: OfferedReads;
}

/**
 * Puts a waiting map onto the volume's device if that is back. It connects again where the kernel has given up the
 * connection and the router offers the volume under the same NQN. It rescans where the kernel has dropped the device. A
 * map that does not queue stays as it is.
 *
 * @throws {VolumeError} identity-mismatch when the device that came back is not the volume: I/O goes on waiting in the
 *   map
 */
export async function restorePath(
  deps: NodeDeps,
  waiting: WaitingMap,
  context: CallContext,
): Promise<Restored> {
  const { map, isStalled, stagingState } = waiting;
  const maps = deps.maps!;
  if (map.sizeBytes === 0n) return stillAway("it has no table: a stage was interrupted");
  const found = await bringBack(deps, waiting, context);
  if ("state" in found) return found;
  const { nqn, namespaceBytes } = stagingState.intent;
  const below = await prove(deps, found, { nqn, sizeBytes: namespaceBytes }, context);
  const { uniqueId } = below;
  if (map.on === below.deviceNumber && !isStalled) return { state: "ready", uniqueId, isRestored: false };
  const { queues, failed } = await maps.table(map, context);
  if (!queues) return ended;
  const isRestored = failed || map.on !== below.deviceNumber;
  // A fence may end the queueing at the same time: it takes no lock against this.
  const again = { hasFailed: true, unlessEnded: true };
  if (isRestored) await attachPath(deps, stagingState, below, context, again);
  return { state: "ready", uniqueId, isRestored };
}

/** Returns the device of a live connection, or the map's result without one. */
async function bringBack(
  deps: NodeDeps,
  { map, stagingState, reads }: WaitingMap,
  context: CallContext,
): Promise<FoundDevice | Restored> {
  const { connector } = deps;
  const { nqn, addresses, port } = stagingState.intent;
  const paths = await connector.connections(nqn, context);
  if (paths.length === 0) {
    const answers = await reads.readAll(addresses.map((address) => ({ address, port })));
    if (!answers.some(({ offered }) => offered?.includes(nqn))) {
      return stillAway("its router does not offer it");
    }
    // The volume was fenced, or given up.
    if (!(await deps.maps!.table(map, context)).queues) return ended;
    await connector.connect(targetOf(stagingState.intent), context);
    deps.events.occurred({ kind: "connected", outcome: "ok" });
  } else if (!paths.some(({ state }) => state === "live")) {
    return stillAway(`no path to it is live: ${paths.map(({ stateName }) => stateName).join(", ")}`);
  }
  const found = await connector.find(nqn, context);
  if (found !== undefined) return found;
  await connector.rescan(nqn, context);
  const scanned = await poll(deps.clock, context, () => connector.find(nqn, context), scanMs);
  return scanned ?? stillAway("its router does not show its device");
}

function stillAway(why: string): Restored {
  return { state: "waiting", why };
}
