import type { ClaimLookup } from "../../telemetry/status/model.ts";
import type { ControllerConfig } from "../config/router_settings.ts";
import type { ClusterConfig } from "../config/cluster.ts";
import { AuditLoop, type AuditLoopSettings } from "../../controller/audit/audit_loop.ts";
import { HardwareLoop } from "../../controller/hardware/loop.ts";
import { RouterBoots } from "../../controller/reconcile/boots.ts";
import { comparedStore } from "../../controller/reconcile/compared_store.ts";
import { CountedReads } from "../../controller/reconcile/counted_reads.ts";
import { type MethodsOf, VolumeLocks } from "../../csi/server/call.ts";
import { MisplacedVolumes } from "../../controller/misplaced.ts";
import { RouterMachines } from "../../controller/router_machines.ts";
import { controllerMethods } from "../../csi/services/controller.ts";
import type { ControllerRpcs } from "../../csi/generated/csi.ts";
import { migrateAtStart } from "../../controller/legacy/migrate_all.ts";
import type { RouterObserver } from "../../routeros/ssh/observer.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { RouterEvents } from "../../telemetry/router_metrics.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import type { ControllerEvents } from "../../volume/ports/controller_events.ts";
import { fanOut } from "../../volume/ports/event_listener.ts";
import type { ControllerDeps } from "../../controller/deps.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { VolumeStore } from "../../volume/ports/store.ts";
import type { ClusterSide } from "./cluster.ts";
import { type Router, Routers } from "../../csi/services/routers/routers.ts";
import { VolumeError } from "../../volume/errors.ts";
import { sharedWithRouter } from "./router_cluster.ts";
import { type Lead, whileLeading } from "./leadership.ts";
import { openRouter, type RouterAdapters } from "./router.ts";
import { controllerDeps } from "./controller_deps.ts";

/** A controller that is ready to be served. */
export interface Controller {
  readonly methods: MethodsOf<ControllerRpcs>;
  /** The lead of a controller in an election: it serves only while it holds it. */
  readonly lead: Lead | undefined;
  /** The locks that calls and loops take before they change a volume. */
  readonly locks: VolumeLocks;
  /** Resolves when the router can be asked and is fit for this driver, see `VolumeStore.probe()`. */
  ready(context: CallContext): Promise<void>;
  /** Starts the background work. */
  start(): void;
  /** Stops what outlived its call, and closes the connection to the router. */
  close(): Promise<void>;
}

/** The adapters of a controller. */
export interface ControllerAdapters extends RouterAdapters {
  /** Counts the events of that router. */
  events(backend: string): ControllerEvents;
  routerEvents(backend: string): readonly RouterEvents[];
  /** Its cluster, if it has one, and its name there. */
  readonly cluster?: ClusterConfig | undefined;
  readonly driverName: string;
  /** Ends a start that waits for the cluster. */
  readonly signal?: AbortSignal;
  /** Called when this controller begins and ends to lead, if there is a cluster. */
  readonly leads?: (isLeading: boolean) => void;
  /** Receives the lookup of volumes' claims, if there is a cluster. */
  readonly showClaims?: (claimOf: ClaimLookup) => void;
  readonly audit: AuditLoopSettings;
  /** How often the leader reads the health of a router's arrays and drives, in milliseconds; 0 never. */
  readonly healthIntervalMs: number;
  /** The view of the cluster, or a replacement for it. */
  readonly clusterView?: ClusterView | undefined;
}

/**
 * The controller of one or several routers, each with its own dependencies: records, counters, waits and copies are
 * separate. They share the cluster, and the locks of calls. It connects to a router with the first command. It connects to
 * the cluster now, if only that knows the cluster's id.
 *
 * @throws {VolumeError} invalid when a file of credentials cannot be used; unavailable when the cluster's id is unknown;
 *   naming every router that cannot be used
 */
export async function openController(
  configs: readonly ControllerConfig[],
  adapters: ControllerAdapters,
): Promise<Controller> {
  const side = await openCluster(adapters);
  const locks = new VolumeLocks();
  const machines = new RouterMachines();
  const misplaced = configs.some(({ ids }) => ids.isOfSeveral) ? new MisplacedVolumes(machines) : undefined;
  const opened: OpenBackend[] = [];
  try {
    const problems: unknown[] = [];
    for (const config of configs) {
      const known = await side?.identified(config, adapters.signal) ?? config;
      const own = config.ids.isOfSeveral
        ? { ...adapters, log: adapters.log.with({ backend: config.settings.backend }) }
        : adapters;
      try {
        opened.push(await openBackend(known, own, { side, locks, misplaced, machines }));
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
  // A router that is away is still asked after another one was ready.
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
      if (side === undefined) {
        for (const { audits, hardware } of opened) [audits, hardware].forEach((one) => one.start());
      } else side.start(opened);
      for (const backend of opened) backend.migrate();
    },
    async close() {
      stop.abort(new VolumeError("cancelled", "The controller stops"));
      await Promise.all([side?.close(), ...opened.map((backend) => backend.close())]);
    },
  };
}

/**
 * Resolves as soon as one of several routers can be asked and is fit for this driver. One that is away for long must
 * not keep the volumes of all others from being served; its problem shows in the log, the metrics, and its own calls.
 *
 * @throws {VolumeError} when none is ready: preferably a problem that a person has to fix
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

/** One error for all, so that everything can be fixed at once. */
function together(problems: readonly unknown[]): unknown {
  const [first] = problems;
  if (problems.length === 1 || !problems.every((one) => VolumeError.is(one))) return first;
  return new VolumeError(problems[0]!.kind, problems.map(({ message }) => message).join("\n"));
}

/** The cluster's client is loaded only if there is a cluster, because it takes time and memory. */
async function openCluster(
  { cluster, driverName, ...adapters }: ControllerAdapters,
): Promise<ClusterSide | undefined> {
  if (cluster === undefined) return undefined;
  return await (await import("./cluster.ts")).ClusterSide.open(cluster, driverName, adapters);
}

/** What the controllers of all routers share. */
interface Shared {
  readonly side: ClusterSide | undefined;
  readonly locks: VolumeLocks;
  readonly misplaced: MisplacedVolumes | undefined;
  readonly machines: RouterMachines;
}

interface OpenBackend extends Router {
  readonly store: VolumeStore;
  readonly boots: RouterBoots;
  readonly audits: AuditLoop;
  readonly hardware: HardwareLoop;
  ready(context: CallContext): Promise<void>;
  /** Migrates at the start what can be migrated. */
  migrate(): void;
  close(): Promise<void>;
}

async function openBackend(
  config: ControllerConfig,
  adapters: ControllerAdapters,
  { side, locks, misplaced, machines }: Shared,
): Promise<OpenBackend> {
  const { settings, ids } = config;
  const routerEvents = adapters.routerEvents(settings.backend);
  const cluster = side?.collaborators(config, ids);
  const events = fanOut(adapters.events(settings.backend), ...cluster === undefined ? [] : [cluster.events]);
  const shared = sharedWithRouter(
    ids,
    { ...cluster, events, locks, ...adapters.clusterView && { clusterView: adapters.clusterView } },
    cluster?.reportsUnknown ?? ids.text === "",
  );
  const reads = new CountedReads({ clock: adapters.clock, events: shared.events, settings });
  const lead = side?.lead;
  const boots = new RouterBoots(adapters.clock);
  const router = await openRouter(config.router, adapters, {
    fence: lead && (() => lead.refusal()),
    presented: (hostKey, others) => machines.presented(settings.backend, hostKey, others),
    observers: [
      ...routerEvents,
      { inventory: (reading) => reads.seen(reading), booted: () => boots.noticed() },
      ...warningObservers(config, misplaced, adapters.log),
    ],
  });
  for (const events of routerEvents) events.load(() => router.load);
  const deps = controllerDeps(config, comparedStore(router, boots), adapters, adapters.log, {
    ...shared,
    misplaced,
    alone: side === undefined || lead !== undefined,
    isShared: () => machines.isShared(settings.backend),
    ...cluster && { nodes: cluster.nodes },
  });
  const audits = new AuditLoop(deps, adapters.audit);
  const hardware = new HardwareLoop(deps, router, adapters.healthIntervalMs);
  const stop = new AbortController();
  let migration: Promise<void> | undefined;
  return {
    name: settings.backend,
    ids,
    isDefault: config.isDefault,
    topology: config.topology,
    deps,
    store: router,
    boots,
    audits,
    hardware,
    ready: (context) => router.probe(context),
    migrate() {
      if (deps.clusterView !== undefined) migration = migrateOnceLeading(deps, lead, stop.signal);
    },
    async close() {
      stop.abort(new Error("the controller stops"));
      await Promise.all([deps.copies.close(), audits.close(), hardware.close(), migration]);
      reads.close();
      router.close();
    },
  };
}

/** Tell people what is wrong with how a router is configured here. */
function warningObservers(
  config: ControllerConfig,
  misplaced: MisplacedVolumes | undefined,
  log: Logger,
): readonly RouterObserver[] {
  return [misplacedObserver(config, misplaced, log), profileObserver(config, log)];
}

/** Reports once, and again when the volumes change, that a router has volumes of another one. */
function misplacedObserver(
  config: ControllerConfig,
  misplaced: MisplacedVolumes | undefined,
  log: Logger,
): RouterObserver {
  if (misplaced === undefined) return {};
  const { backend, cluster } = config.settings;
  misplaced.add(backend, cluster);
  let reported = "";
  return {
    inventory(reading) {
      const owners = misplaced.seen(backend, reading).toSorted().join(", ");
      const reason = "names, addresses, or the default router were exchanged in the file of --config";
      if (owners !== "" && owners !== reported) {
        log.error("this router has volumes of another router; the driver leaves them alone", {
          owners,
          reason,
        });
      }
      reported = owners;
    },
  };
}

/** Warns of a profile that is of another RouterOS: an upgrade may change what the router does. */
function profileObserver({ profile }: ControllerConfig, log: Logger): RouterObserver {
  return {
    identified({ version }) {
      if (profile === undefined || profile.version === version) return;
      log.warn("the router's profile is of another RouterOS: probe the router again", {
        profile: profile.version,
        version,
      });
    },
  };
}

/** In an election, the leader migrates volumes. */
async function migrateOnceLeading(
  deps: ControllerDeps,
  lead: Lead | undefined,
  signal: AbortSignal,
): Promise<void> {
  const begun = await lead?.begun(signal).then(() => true, () => false) ?? true;
  if (begun) await migrateAtStart(deps, signal);
}
