import type { ControllerConfig } from "../config/config.ts";
import type { Clock, Random } from "../../volume/ports/system.ts";
import type { VolumeStore } from "../../volume/ports/store.ts";
import {
  anyPair,
  type DetachedNodes,
  fixedNodes,
  type FormatConsents,
  type MigrationPairs,
  type NodeDirectory,
  unknownDetachedNodes,
} from "../../volume/ports/cluster_ports.ts";
import { ImageCopies } from "../../controller/volumes/copies.ts";
import type { MisplacedVolumes } from "../../controller/misplaced.ts";
import { HardwareMemory } from "../../controller/hardware/memory.ts";
import { VolumeMemory } from "../../controller/records/memory.ts";
import { PromisedRoom } from "../../controller/volumes/promised_room.ts";
import type { ControllerDeps, VolumeLocking } from "../../controller/deps.ts";
import { takeOver } from "../../controller/take_over.ts";
import { VolumeLocks } from "../../csi/server/call.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { ControllerEvents } from "../../volume/ports/controller_events.ts";
import { unheard } from "../../volume/ports/event_listener.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import { noProjection, type VolumeProjection } from "../../volume/ports/projection.ts";

/** Other parts that receive a controller's events, or know more than its configuration. */
export interface ControllerCollaborators {
  /** @default {nothing is counted} */
  readonly events?: ControllerEvents;
  /** @default {nothing is shown} */
  readonly projection?: VolumeProjection;
  /** @default {the nodes of the configuration} */
  readonly nodes?: NodeDirectory;
  /** @default {any two nodes} */
  readonly pairs?: MigrationPairs;
  /** @default {nothing is known of nodes that have left} */
  readonly detachedNodes?: DetachedNodes;
  /** @default {none: there is no cluster to ask} */
  readonly consents?: FormatConsents;
  /** The locks of the served calls. @default {its own locks} */
  readonly locks?: VolumeLocking;
  /** @default {none: there is no cluster to ask} */
  readonly clusterView?: ClusterView;
  /** @default {none: there is no other router} */
  readonly misplaced?: MisplacedVolumes | undefined;
  /** Whether no other controller changes volumes of its router meanwhile. @default {false} */
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
  config: ControllerConfig,
  store: VolumeStore,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  log: Logger,
  collaborators: ControllerCollaborators = {},
): ControllerDeps {
  const {
    events,
    projection,
    nodes,
    locks,
    pairs,
    detachedNodes,
    consents,
    clusterView,
    misplaced,
    alone = false,
    isShared = () => false,
  } = collaborators;
  if (config.settings.cluster === "") throw new TypeError("Cannot work without knowing for which cluster");
  return {
    store,
    clock,
    random,
    takeOver,
    memory: new VolumeMemory(clock, alone),
    hardware: new HardwareMemory(clock),
    promised: new PromisedRoom(clock, config.settings, () => alone && !isShared()),
    copies: new ImageCopies(clock),
    nodes: nodes ?? fixedNodes(config.knownNodes),
    settings: config.settings,
    events: events ?? unheard,
    projection: projection ?? noProjection,
    locks: locks ?? new VolumeLocks(),
    pairs: pairs ?? anyPair,
    detachedNodes: detachedNodes ?? unknownDetachedNodes,
    consents,
    clusterView,
    misplaced,
    notes: { warn: (message, fields) => log.warn(message, fields) },
  };
}
