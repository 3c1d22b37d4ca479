import type { DirectoryControllerConfig } from "../config/directories.ts";
import type { DirectoryDeps } from "../../controller/directories/deps.ts";
import { DirectoryRemovals } from "../../controller/directories/removals.ts";
import { shareOf } from "../../controller/directories/deps.ts";
import { ChangesInDoubt } from "../../controller/records/in_doubt.ts";
import { directoryControllerMethods } from "../../csi/services/directory_controller.ts";
import { VolumeLocks } from "../../csi/server/call.ts";
import { RouterDirectoryStore } from "../../routeros/directories/directory_store.ts";
import { RouterVolumeStore } from "../../routeros/store/volume_store.ts";
import type { ShareView } from "../../volume/ports/directory_store.ts";
import type { DirectoryEvent, DirectoryEvents } from "../../volume/ports/directory_events.ts";
import { fanOut } from "../../volume/ports/event_listener.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { directoryMark } from "../../volume/model/directory/names.ts";
import { clusterHash } from "../../volume/model/ids/cluster_hash.ts";
import { shareProblem } from "../../volume/rules/directory_share.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { Controller, ControllerAdapters } from "./controller.ts";
import type { LeaderSide } from "./leader_side.ts";
import { whileLeading } from "./leadership.ts";
import { openSession } from "./router.ts";

/** The adapters of a controller of directories. */
export interface DirectoryControllerAdapters extends
  Pick<
    ControllerAdapters,
    "clock" | "random" | "log" | "readText" | "routerEvents" | "cluster" | "driverName" | "signal" | "leads"
  > {
  readonly events: DirectoryEvents;
}

/**
 * The controller of the directories of one share. It connects to the router with the first command.
 *
 * @throws {VolumeError} invalid when a file of credentials cannot be used; unavailable when the cluster's id is unknown
 */
export async function openDirectoryController(
  config: DirectoryControllerConfig,
  adapters: DirectoryControllerAdapters,
): Promise<Controller> {
  const { clock, random, log } = adapters;
  const side = await openCluster(adapters);
  try {
    const lead = side?.lead;
    const routerEvents = adapters.routerEvents(config.backend);
    const session = await openSession(config.router, adapters, {
      observers: routerEvents,
      fence: lead && (() => lead.refusal()),
    });
    // Of a store of volumes only the check of the router is used.
    const volumes = new RouterVolumeStore(session);
    for (const events of routerEvents) events.load(() => volumes.load);
    const events = fanOut(adapters.events, progressLog(log));
    const store = new RouterDirectoryStore({
      ...session,
      probe: (context) => volumes.probe(context),
      observe: (view, mountPoint) => events.occurred(shareRead(view, mountPoint)),
    });
    const settings = await identified(config, side, adapters.signal);
    const shared = {
      ...{ store, clock, settings, inDoubt: new ChangesInDoubt(clock) },
      notes: { warn: log.warn.bind(log) },
      events,
    };
    const removals = new DirectoryRemovals(shared);
    const deps: DirectoryDeps = { ...shared, random, removals, clusterView: side?.cluster.use };
    return served(deps, removals, { side, close: () => volumes.close() }, log);
  } catch (error) {
    await side?.close();
    throw error;
  }
}

function served(
  deps: DirectoryDeps,
  removals: DirectoryRemovals,
  { side, close }: { readonly side: LeaderSide | undefined; close(): void },
  log: Logger,
): Controller {
  const lead = side?.lead;
  const methods = directoryControllerMethods(deps);
  const stop = new AbortController();
  let running: Promise<void> | undefined;
  return {
    methods: lead === undefined ? methods : whileLeading(methods, lead),
    lead,
    locks: new VolumeLocks(),
    ready: async (context) => {
      await deps.store.probe(context);
      await reportShare(deps, log, context);
    },
    start() {
      let hasLed = lead === undefined;
      const run = (signal: AbortSignal) => {
        // Another controller may have led before. None has since, or this process would have ended.
        if (!hasLed) deps.inDoubt.suspectOthers();
        hasLed = true;
        return removals.run(signal);
      };
      if (side === undefined) running = run(stop.signal);
      else side.start(run);
    },
    async close() {
      stop.abort(new Error("the controller stops"));
      await Promise.all([side?.close(), running]);
      close();
    },
  };
}

/** Says at once what every create would be refused for; volumes that are there stay usable. */
async function reportShare(
  { store, settings }: DirectoryDeps,
  log: Logger,
  context: CallContext,
): Promise<void> {
  const view = await store.find([settings.basePaths[0]!], context);
  const reason = shareProblem(view, shareOf(settings));
  if (reason !== undefined) log.error("the share cannot be used for new directories", { reason });
}

async function identified(
  { settings }: DirectoryControllerConfig,
  side: LeaderSide | undefined,
  signal: AbortSignal | undefined,
) {
  if (settings.cluster !== "" || side === undefined) return settings;
  return { ...settings, cluster: directoryMark(clusterHash(await side.uid(signal))) };
}

function shareRead(view: ShareView, mountPoint: string): DirectoryEvent {
  const isUsable = shareProblem(view, mountPoint) === undefined;
  return { kind: "share-read", isUsable, freeBytes: view.share?.freeBytes ?? 0n };
}

function progressLog(log: Logger): DirectoryEvents {
  return {
    occurred: (event) => {
      if (event.kind !== "removal-progress") return;
      const { kind: _, ...fields } = event;
      log.info("a deleted directory is being removed", fields);
    },
  };
}

/** The cluster's client is loaded only if there is a cluster, because it takes time and memory. */
async function openCluster(
  { cluster, driverName, ...adapters }: DirectoryControllerAdapters,
): Promise<LeaderSide | undefined> {
  if (cluster === undefined) return undefined;
  return await (await import("./leader_side.ts")).LeaderSide.open(cluster, driverName, adapters);
}
