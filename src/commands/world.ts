import type { ControllerConfig } from "../config.ts";
import { fixedNodes } from "../controller/fixed_nodes.ts";
import { ImageCopies } from "../controller/copies.ts";
import { UnsettledChanges } from "../controller/unsettled.ts";
import { ConfirmedWithdrawals } from "../controller/withdrawals.ts";
import type { ControllerWorld } from "../controller/world.ts";
import type { Logger } from "../telemetry/log.ts";
import { type ControllerEvents, uncountedByController } from "../volume/controller_events.ts";
import type { Clock, Random, VolumeStore } from "../volume/ports.ts";

/** The world of a controller, from its configuration. */
export function controllerWorld(
  config: ControllerConfig,
  store: VolumeStore,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  log: Logger,
  events: ControllerEvents = uncountedByController,
): ControllerWorld {
  return {
    store,
    clock,
    random,
    withdrawals: new ConfirmedWithdrawals(clock),
    unsettled: new UnsettledChanges(clock),
    copies: new ImageCopies(clock),
    nodes: fixedNodes(config.knownNodes),
    settings: config.settings,
    events,
    notes: { warn: (message, fields) => log.warn(message, fields) },
  };
}
