import type { ControllerConfig } from "../config.ts";
import type { ClusterConfig } from "../config/cluster.ts";
import { AuditLoop, type AuditLoopSettings } from "../controller/audit_loop.ts";
import { CountedLooks } from "../controller/counted_looks.ts";
import type { MethodsOf } from "../csi/call.ts";
import { controllerMethods } from "../csi/controller.ts";
import type { ControllerHandlers } from "../csi/generated/csi/v1/Controller.ts";
import { VolumeLocks } from "../csi/volume_lock.ts";
import { takeOverAtStart } from "../controller/takeover_sweep.ts";
import type { RouterEvents } from "../telemetry/router_metrics.ts";
import type { ClusterView } from "../volume/cluster_view.ts";
import type { ControllerEvents } from "../volume/controller_events.ts";
import type { ControllerWorld } from "../controller/world.ts";
import type { CallContext } from "../volume/ports.ts";
import type { ClusterSide } from "./cluster.ts";
import { type Lead, whileLeading } from "./lead.ts";
import { openRouter, type RouterSeams } from "./router.ts";
import { controllerWorld } from "./world.ts";

/** A controller that is ready to be served. */
export interface Controller {
  readonly methods: MethodsOf<ControllerHandlers>;
  /** Of one that takes part in an election: it serves only while it holds it. */
  readonly lead: Lead | undefined;
  /** What calls and loops take before they change a volume. */
  readonly locks: VolumeLocks;
  /** Whether the router can be asked and is fit for this driver, see `VolumeStore.probe()`. */
  ready(context: CallContext): Promise<void>;
  /** Begins what is done without being asked. */
  start(): void;
  /** Ends what outlived its call, and the connection to the router. */
  close(): Promise<void>;
}

/** What a controller needs beside its configuration. */
export interface ControllerSeams extends RouterSeams {
  readonly events: ControllerEvents;
  readonly routerEvents: RouterEvents;
  /** Its cluster, if it has one, and its name there. */
  readonly cluster?: ClusterConfig | undefined;
  readonly driverName: string;
  /** Ends a start that waits for the cluster. */
  readonly signal?: AbortSignal;
  /** Hears when this controller begins and ends to lead, where there is a cluster. */
  readonly leads?: (isLeading: boolean) => void;
  readonly audit: AuditLoopSettings;
  /** What stands for the cluster, or in its place. */
  readonly clusterView?: ClusterView | undefined;
}

/**
 * The controller of a configuration. The router is not dialled before the first command; the cluster is, where only it
 * knows which one it is.
 *
 * @throws {VolumeError} invalid when a file of credentials cannot be used; unavailable when it cannot be told which
 * cluster this is
 */
export async function openController(config: ControllerConfig, seams: ControllerSeams): Promise<Controller> {
  const side = await openCluster(seams);
  try {
    return await openWith(await side?.identified(config, seams.signal) ?? config, seams, side);
  } catch (error) {
    await side?.close();
    throw error;
  }
}

/** The cluster's client is loaded only where there is a cluster: it takes its time and memory. */
async function openCluster(
  { cluster, driverName, ...seams }: ControllerSeams,
): Promise<ClusterSide | undefined> {
  if (cluster === undefined) return undefined;
  return new (await import("./cluster.ts")).ClusterSide(cluster, driverName, seams);
}

async function openWith(
  config: ControllerConfig,
  seams: ControllerSeams,
  side: ClusterSide | undefined,
): Promise<Controller> {
  const { settings } = config;
  const { clock, events, routerEvents } = seams;
  const looks = new CountedLooks({ clock, events, settings });
  const { lead } = side ?? {};
  const router = await openRouter(config.router, seams, {
    allowUnfenced: settings.allowUnfenced,
    fence: lead && (() => lead.refusal()),
    observers: [routerEvents, { inventory: (look) => looks.seen(look) }],
  });
  routerEvents.load(() => router.load);
  const locks = new VolumeLocks();
  const { clusterView } = seams;
  const neighbours = side?.neighbours(config, events) ?? { events };
  const given = { ...neighbours, locks, ...clusterView && { clusterView } };
  const world = controllerWorld(config, router, seams, seams.log, given);
  const stop = new AbortController();
  let takeover: Promise<void> | undefined;
  const audits = new AuditLoop(world, seams.audit);
  const methods = controllerMethods(world);
  return {
    methods: lead === undefined ? methods : whileLeading(methods, lead),
    lead,
    locks,
    ready: (context) => router.probe(context),
    start() {
      if (side === undefined) audits.start();
      else side.start(world, audits);
      if (world.clusterView !== undefined) takeover = takeOverOnceLeading(world, lead, stop.signal);
    },
    async close() {
      stop.abort(new Error("the controller stops"));
      await Promise.all([world.copies.close(), side?.close(), audits.close(), takeover]);
      looks.close();
      router.close();
    },
  };
}

/** Where several take part in an election, volumes are taken over by the one that leads. */
async function takeOverOnceLeading(
  world: ControllerWorld,
  lead: Lead | undefined,
  signal: AbortSignal,
): Promise<void> {
  const begun = await lead?.begun(signal).then(() => true, () => false) ?? true;
  if (begun) await takeOverAtStart(world, signal);
}
