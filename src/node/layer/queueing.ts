import type { CallContext } from "../../volume/ports/system.ts";
import { findMultipath, readChain } from "../chain/chain.ts";
import type { NodeDeps } from "../deps.ts";

/** Whether writes to the volume would wait for a missing device. */
export async function isQueueing(deps: NodeDeps, nqn: string, context: CallContext): Promise<boolean> {
  const { map, used } = await readChain(deps, nqn, context);
  if (map?.kind !== "multipath" || used !== undefined) return false;
  return map.sizeBytes > 0n && (await deps.maps!.table(map, context)).queues;
}

/** Whether all I/O of the volume's map fails once its device is away, since its queueing was ended. */
export async function isGivenUp(deps: NodeDeps, nqn: string, context: CallContext): Promise<boolean> {
  const map = await findMultipath(deps, nqn);
  // One that is being reloaded shows no queueing as long as it is suspended, and queues again.
  if (map === undefined || map.suspended || map.sizeBytes === 0n) return false;
  return !(await deps.maps!.table(map, context)).queues;
}

/** Lets I/O that waits for a missing device fail from now on. OK when there is no map. */
export async function endQueueing(deps: NodeDeps, nqn: string, context: CallContext): Promise<void> {
  const map = await findMultipath(deps, nqn);
  if (map !== undefined) await deps.maps!.endQueueing(map, context);
}
