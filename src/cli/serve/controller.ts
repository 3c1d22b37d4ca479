import type { ControllerConfig } from "../config/config.ts";
import type { ClusterConfig } from "../config/cluster.ts";
import { AuditLoop, type AuditLoopSettings } from "../../controller/audit/audit_loop.ts";
import { CountedLooks } from "../../controller/reconcile/counted_reads.ts";
import { type MethodsOf, VolumeLocks } from "../../csi/server/call.ts";
import { StrayedVolumes } from "../../controller/misplaced.ts";
import { controllerMethods } from "../../csi/services/controller.ts";
import type { ControllerHandlers } from "../../csi/generated/csi/v1/Controller.ts";
import { takeOverAtStart } from "../../controller/legacy/migrate.ts";
import type { RouterObserver } from "../../routeros/ssh/observer.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { RouterEvents } from "../../telemetry/router_metrics.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import { type ControllerEvents, tellingAll } from "../../volume/ports/controller_events.ts";
import type { ControllerWorld } from "../../controller/deps.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { ClusterSide } from "./cluster.ts";
import { type Router, Routers } from "../../csi/services/routers/routers.ts";
import { VolumeError } from "../../volume/errors.ts";
import { VolumeIdPrefix } from "../../volume/model/ids.ts";
import { sharedWithRouter } from "./router_cluster.ts";
import { type Lead, whileLeading } from "./leadership.ts";
import { openRouter, type RouterSeams } from "./router.ts";
import { controllerWorld } from "./controller_deps.ts";

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
  /** Who counts what happens with that router. */
  events(backend: string): ControllerEvents;
  routerEvents(backend: string): RouterEvents;
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
 * The controller of the only router. The router is not dialled before the first command; the cluster is, where only it knows
 * which one it is.
 *
 * @throws {VolumeError} invalid when a file of credentials cannot be used; unavailable when it cannot be told which
 * cluster this is
 */
export async function openController(config: ControllerConfig, seams: ControllerSeams): Promise<Controller> {
  return await openAll([config], seams, false);
}

/**
 * The controller of several routers, each with a world of its own: what is remembered, counted, waited for and copied for one
 * is no other's business. They share the cluster, and the locks of calls.
 *
 * @throws {VolumeError} as {@linkcode openController}, naming every router that cannot be used
 */
export async function openBackends(
  configs: readonly ControllerConfig[],
  seams: ControllerSeams,
): Promise<Controller> {
  return await openAll(configs, seams, true);
}

async function openAll(
  configs: readonly ControllerConfig[],
  seams: ControllerSeams,
  areNamed: boolean,
): Promise<Controller> {
  const side = await openCluster(seams);
  const locks = new VolumeLocks();
  const strayed = areNamed ? new StrayedVolumes() : undefined;
  const opened: OpenBackend[] = [];
  try {
    const problems: unknown[] = [];
    for (const config of configs) {
      const known = await side?.identified(config, seams.signal) ?? config;
      const ids = areNamed ? new VolumeIdPrefix(config.prefix) : VolumeIdPrefix.none;
      const own = areNamed ? { ...seams, log: seams.log.with({ backend: config.settings.backend }) } : seams;
      try {
        opened.push(await openBackend(known, own, { side, locks, ids, strayed }));
      } catch (error) {
        problems.push(error);
      }
    }
    if (problems.length > 0) throw together(problems);
  } catch (error) {
    await Promise.all([side?.close(), ...opened.map((backend) => backend.close())]);
    throw error;
  }
  const { lead } = side ?? {};
  const methods = controllerMethods(new Routers(opened));
  // A router that is away goes on being asked after another one was ready.
  const stop = new AbortController();
  const whileOpen = (context: CallContext) => ({
    ...context,
    signal: AbortSignal.any([context.signal, stop.signal]),
  });
  return {
    methods: lead === undefined ? methods : whileLeading(methods, lead),
    lead,
    locks,
    ready: (context) => firstReady(opened.map((backend) => backend.ready), whileOpen(context)),
    start() {
      if (side === undefined) { for (const { audits } of opened) audits.start(); }
      else side.start(opened);
      for (const backend of opened) backend.takeOver();
    },
    async close() {
      stop.abort(new VolumeError("cancelled", "The controller stops"));
      await Promise.all([side?.close(), ...opened.map((backend) => backend.close())]);
    },
  };
}

/**
 * Resolves as soon as one of several routers can be asked and is fit for this driver. One that is away for long must not keep
 * the volumes of all others from being served; what it lacks is told in the log and the metrics, and by its own calls.
 *
 * @throws {VolumeError} when none is: what a person has to mend rather than what may pass
 */
async function firstReady(
  asks: readonly ((context: CallContext) => Promise<void>)[],
  context: CallContext,
): Promise<void> {
  try {
    await Promise.any(asks.map((ask) => ask(context)));
  } catch (error) {
    if (!(error instanceof AggregateError)) throw error;
    const reasons: readonly unknown[] = error.errors;
    const isLasting = (reason: unknown) =>
      VolumeError.is(reason, "precondition") || VolumeError.is(reason, "unsupported");
    throw reasons.find((reason) => !VolumeError.is(reason)) ?? reasons.find(isLasting) ?? reasons[0];
  }
}

/** One error for all, so that everything can be mended at once. */
function together(problems: readonly unknown[]): unknown {
  const [first] = problems;
  if (problems.length === 1 || !problems.every((one) => VolumeError.is(one))) return first;
  return new VolumeError(problems[0]!.kind, problems.map(({ message }) => message).join("\n"));
}

/** The cluster's client is loaded only where there is a cluster: it takes its time and memory. */
async function openCluster(
  { cluster, driverName, ...seams }: ControllerSeams,
): Promise<ClusterSide | undefined> {
  if (cluster === undefined) return undefined;
  return new (await import("./cluster.ts")).ClusterSide(cluster, driverName, seams);
}

/** What the controllers of all routers share. */
interface Shared {
  readonly side: ClusterSide | undefined;
  readonly locks: VolumeLocks;
  readonly ids: VolumeIdPrefix;
  readonly strayed: StrayedVolumes | undefined;
}

interface OpenBackend extends Router {
  readonly audits: AuditLoop;
  ready(context: CallContext): Promise<void>;
  /** Takes over at the start what can be. */
  takeOver(): void;
  close(): Promise<void>;
}

async function openBackend(
  config: ControllerConfig,
  seams: ControllerSeams,
  { side, locks, ids, strayed }: Shared,
): Promise<OpenBackend> {
  const { settings } = config;
  const { clock } = seams;
  const routerEvents = seams.routerEvents(settings.backend);
  const cluster = side?.neighbours(config, ids);
  const shared = sharedWithRouter(
    ids,
    {
      ...cluster,
      events: tellingAll(seams.events(settings.backend), ...cluster === undefined ? [] : [cluster.events]),
      locks,
      ...seams.clusterView && { clusterView: seams.clusterView },
    },
    cluster?.reportsStrays ?? ids.text === "",
  );
  const looks = new CountedLooks({ clock, events: shared.events, settings });
  const { lead } = side ?? {};
  const router = await openRouter(config.router, seams, {
    allowUnfenced: settings.allowUnfenced,
    fence: lead && (() => lead.refusal()),
    observers: [
      routerEvents,
      { inventory: (look) => looks.seen(look) },
      strayedObserver(config, strayed, seams.log),
    ],
  });
  routerEvents.load(() => router.load);
  const world = controllerWorld(config, router, seams, seams.log, {
    ...shared,
    ...cluster && { nodes: cluster.nodes },
    strayed,
  });
  const stop = new AbortController();
  let takeover: Promise<void> | undefined;
  const audits = new AuditLoop(world, seams.audit);
  return {
    name: settings.backend,
    ids,
    isDefault: config.isDefault,
    topology: config.topology,
    world,
    audits,
    ready: (context) => router.probe(context),
    takeOver() {
      if (world.clusterView !== undefined) takeover = takeOverOnceLeading(world, lead, stop.signal);
    },
    async close() {
      stop.abort(new Error("the controller stops"));
      await Promise.all([world.copies.close(), audits.close(), takeover]);
      looks.close();
      router.close();
    },
  };
}

/** Tells once, and again when it is about others, that a router has volumes of another one. */
function strayedObserver(
  { settings: { backend, cluster } }: ControllerConfig,
  strayed: StrayedVolumes | undefined,
  log: Logger,
): RouterObserver {
  if (strayed === undefined) return {};
  strayed.add(backend, cluster);
  let told = "";
  return {
    inventory(look) {
      const owners = strayed.seen(backend, look).toSorted().join(", ");
      const reason =
        "names, addresses, or which router is the default one, were exchanged in the file of --config";
      if (owners !== "" && owners !== told) {
        log.error("this router has volumes of another router; none of them is touched", { owners, reason });
      }
      told = owners;
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
