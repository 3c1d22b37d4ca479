import { judgeOwnership } from "../volume/rules/ownership.ts";
import type { CallContext } from "../volume/ports/system.ts";
import type { Inventory } from "../volume/model/inventory.ts";
import type { OwnedVolume } from "../volume/model/record.ts";
import type { ControllerWorld } from "./deps.ts";

/** One look at all volumes, which stands for the moment at which it began. */
export interface WideLook {
  /** See `VolumeProjection.beforeLook()`. */
  readonly turn: number;
  readonly inventory: Inventory;
  /** The volumes of this cluster whose record is whole. */
  readonly volumes: readonly OwnedVolume[];
}

/** Looks at all volumes of this cluster. One command. */
export async function lookWide(world: ControllerWorld, context: CallContext): Promise<WideLook> {
  const turn = world.projection.beforeLook();
  const inventory = await world.store.inventory(context);
  const volumes = inventory.volumes.flatMap((stored) => {
    const ownership = judgeOwnership(stored, world.settings.cluster);
    return ownership.state === "owned" ? [ownership.volume] : [];
  });
  world.withdrawals.look(volumes.map(({ stored }) => stored));
  return { turn, inventory, volumes };
}
