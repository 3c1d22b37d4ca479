import type { ControllerConfig } from "../config/router_settings.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import type { VolumeStore } from "../../volume/ports/store.ts";
import { anyPair, fixedNodes, unknownDetachedNodes } from "../../volume/ports/cluster_ports.ts";
import { ImageCopies } from "../../controller/volumes/copies.ts";
import { HardwareMemory } from "../../controller/hardware/memory.ts";
import { VolumeMemory } from "../../controller/records/memory.ts";
import { PromisedRoom } from "../../controller/volumes/promised_room.ts";
import type { ControllerDeps } from "../../controller/deps.ts";
import { takeOver } from "../../controller/take_over.ts";
import { VolumeLocks } from "../../csi/server/call.ts";
import type { Logger } from "../../telemetry/log.ts";
import { unheard } from "../../volume/ports/event_listener.ts";
import { noProjection } from "../../volume/ports/projection.ts";

/**
 * Other parts that receive a controller's events, or know more than its configuration. Without them nothing is counted
 * or shown, its locks are its own, the nodes are those of the configuration, any two of them may share a volume, and
 * there is neither a cluster to ask nor another router.
 */
export interface ControllerCollaborators extends
  Partial<
    Pick<
      ControllerDeps,
      | "events"
      | "projection"
      | "nodes"
      | "pairs"
      | "detachedNodes"
      | "consents"
      | "locks"
      | "clusterView"
      | "misplaced"
    >
  > {
  /**
   * Whether no other controller changes volumes of its router meanwhile: without an election another one may, except
   * without a cluster, where only one may run at a time. @default {false}
   */
  readonly alone?: boolean;
  /** Whether another router of the file may be the same machine. @default {never} */
  readonly isShared?: () => boolean;
}

/**
 * Makes the dependencies of a controller from its configuration.
 *
 * @throws {TypeError} when the cluster's id is missing
 */
export function controllerDeps(
  { settings, knownNodes }: ControllerConfig,
  store: VolumeStore,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  log: Logger,
  { alone = false, isShared = () => false, ...others }: ControllerCollaborators = {},
): ControllerDeps {
  if (settings.cluster === "") throw new TypeError("Cannot work without knowing for which cluster");
  return {
    ...others,
    store,
    clock,
    random,
    takeOver,
    settings,
    memory: new VolumeMemory(clock, alone),
    hardware: new HardwareMemory(clock),
    promised: new PromisedRoom(clock, settings, () => alone && !isShared()),
    copies: new ImageCopies(clock),
    nodes: others.nodes ?? fixedNodes(knownNodes),
    events: others.events ?? unheard,
    projection: others.projection ?? noProjection,
    locks: others.locks ?? new VolumeLocks(),
    pairs: others.pairs ?? anyPair,
    detachedNodes: others.detachedNodes ?? unknownDetachedNodes,
    notes: { warn: (message, fields) => log.warn(message, fields) },
  };
}
