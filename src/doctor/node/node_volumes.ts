import { Stashes } from "../../node/stage/staging_store.ts";
import type { NodeWorld } from "../../node/deps.ts";
import { VolumeError } from "../../volume/errors.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import type { CallContext, Connection } from "../../volume/ports/ports.ts";
import type { Stash } from "../../volume/model/staging_state.ts";

/** What this node remembers of a volume, and to what it is connected. */
export interface NodeVolume {
  readonly id: string;
  /** The state file; `damaged` says how it is. */
  readonly stash: Stash | { readonly damaged: string } | undefined;
  /** Its subsystems that are connected, of any epoch, each with its paths. */
  readonly connected: readonly { readonly nqn: string; readonly connections: readonly Connection[] }[];
}

/** The state file if it can be used. */
export function stashOf({ stash }: NodeVolume): Stash | undefined {
  return stash !== undefined && "damaged" in stash ? undefined : stash;
}

/**
 * Every volume that this node has a state file of or is connected to, by id.
 *
 * @throws {VolumeError} unavailable when the connections cannot be read
 */
export async function volumesOfNode(world: NodeWorld, context: CallContext): Promise<readonly NodeVolume[]> {
  const connected = await world.connector.connected(context);
  const named = connected.map((nqn) => ({ nqn, id: idOf(nqn, world.settings.nqnPrefix) }));
  const ids = new Set([...await new Stashes(world).ids(), ...named.map(({ id }) => id)]);
  return await Promise.all(
    [...ids].toSorted().map(async (id) => ({
      id,
      stash: await findStash(world, id),
      connected: await Promise.all(
        named.filter((each) => each.id === id).map(async ({ nqn }) => ({
          nqn,
          connections: await world.connector.connections(nqn, context),
        })),
      ),
    })),
  );
}

/** An NQN of the driver's prefix that names no volume stands for itself. */
function idOf(nqn: string, prefix: string): string {
  return parseExportNqn(nqn, prefix)?.volumeId ?? nqn;
}

async function findStash(world: NodeWorld, id: string): Promise<NodeVolume["stash"]> {
  try {
    return await new Stashes(world).find(id);
  } catch (error) {
    if (VolumeError.is(error, "precondition")) return { damaged: error.message };
    throw error;
  }
}
