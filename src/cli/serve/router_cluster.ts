import type { ControllerDeps } from "../../controller/deps.ts";
import type { ClusterAttachment, ClusterView, ReconciledCluster } from "../../volume/ports/cluster_view.ts";
import type { ControllerEvent } from "../../volume/ports/controller_events.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { Totals } from "../../volume/model/totals.ts";
import { splitHandle, type VolumeIdPrefix } from "../../volume/model/ids/handles.ts";

/** What the controllers of all routers share, with volumes by clients' ids. */
export type SharedDeps =
  & Pick<ControllerDeps, "events" | "locks">
  & Partial<Pick<ControllerDeps, "projection" | "pairs" | "detachedNodes" | "consents" | "clusterView">>;

/**
 * The shared dependencies as the controller of one router sees them: only its own volumes, by its own ids. Volumes of
 * other routers do not exist there, so that none of them can be judged, withdrawn or deleted.
 *
 * @param reportsUnknown whether this router's audits report attachments whose volume is unknown
 */
export function sharedWithRouter(
  ids: VolumeIdPrefix,
  shared: SharedDeps,
  reportsUnknown: boolean,
): SharedDeps {
  if (!ids.isOfSeveral) return shared;
  const { events, locks, projection, pairs, detachedNodes, consents, clusterView } = shared;
  return {
    events: { occurred: (event) => events.occurred(withPrefix(ids, event)) },
    locks: { tryTake: (keys, holder) => locks.tryTake(keys.map((key) => ids.add(key)), holder) },
    ...projection && {
      projection: {
        show: (id, record) => projection.show(ids.add(id), record),
        beforeRead: () => projection.beforeRead(),
        showAll: (reading, volumes) =>
          projection.showAll(
            reading,
            volumes.map(({ stored, ...volume }) => ({
              ...volume,
              stored: { ...stored, id: ids.add(stored.id) },
            })),
          ),
      },
    },
    ...pairs && {
      pairs: {
        reasonAgainst: (pair, signal) =>
          pairs.reasonAgainst({ ...pair, volumeId: ids.add(pair.volumeId) }, signal),
      },
    },
    ...detachedNodes && {
      detachedNodes: {
        reasonAgainst: (node, signal) =>
          detachedNodes.reasonAgainst({ ...node, volumeId: ids.add(node.volumeId) }, signal),
      },
    },
    ...consents && {
      consents: {
        claimOf: (id) => consents.claimOf(ids.add(id)),
        allowsFormat: (id, epoch, signal) => consents.allowsFormat(ids.add(id), epoch, signal),
      },
    },
    ...clusterView && { clusterView: viewOfRouter(ids, clusterView, reportsUnknown) },
  };
}

function withPrefix(ids: VolumeIdPrefix, event: ControllerEvent): ControllerEvent {
  switch (event.kind) {
    case "audited":
    case "hardware-read":
      return event;
    case "inventory-read":
      return { ...event, totals: totalsWithPrefix(ids, event.totals) };
    case "out-of-space":
      return { ...event, about: typeof event.about === "string" ? ids.add(event.about) : event.about };
    default:
      return { ...event, volumeId: ids.add(event.volumeId) };
  }
}

function totalsWithPrefix(ids: VolumeIdPrefix, totals: Totals): Totals {
  return {
    ...totals,
    volumes: totals.volumes.map((volume) => ({ ...volume, id: ids.add(volume.id) })),
    folders: totals.folders.map((folder) => {
      const { labelTakenBy } = folder.pool ?? {};
      if (folder.pool === undefined || labelTakenBy === undefined) return folder;
      return { ...folder, pool: { ...folder.pool, labelTakenBy: ids.add(labelTakenBy) } };
    }),
  };
}

/**
 * What the cluster uses of one router.
 *
 * Every id with another router's prefix counts as another driver's here: swapping routers' names deletes nothing.
 *
 * @param reportsUnknown as for {@linkcode sharedWithRouter}
 */
export function viewOfRouter(ids: VolumeIdPrefix, view: ClusterView, reportsUnknown: boolean): ClusterView {
  if (!ids.isOfSeveral) return view;
  return {
    volumes: async (context) => (await view.volumes(context)).flatMap((one) => stripped(ids, one)),
    attachments: async (context) => (await view.attachments(context)).flatMap((one) => stripped(ids, one)),
    // An attachment whose volume is unknown may be any router's.
    allAttachments: async (context) =>
      (await view.allAttachments(context)).flatMap((one): ClusterAttachment[] =>
        one.volumeId === undefined ? [one] : stripped(ids, { ...one, volumeId: one.volumeId })
      ),
    latestEpoch: (id, context) => view.latestEpoch(ids.add(id), context),
    objectsOf: (id, context) => view.objectsOf(ids.add(id), context),
    names: async (context) =>
      (await view.names(context)).flatMap((one) => {
        const id = ids.strip(one.id);
        return id === undefined ? [] : [{ ...one, id }];
      }),
    volumeContext: (id) => view.volumeContext(ids.add(id)),
    snapshotHandles: async (context) => {
      const handles = await view.snapshotHandles(context);
      return handles && withBareIds(handles);
    },
    unknownVolumeAttachments: async (context) =>
      reportsUnknown ? await view.unknownVolumeAttachments(context) : [],
    assertAttachmentsReadable: (context) => view.assertAttachmentsReadable(context),
    othersHandles: async (context) => {
      const foreign = (await view.volumes(context)).map(({ volumeId }) => volumeId)
        .filter((handle) => ids.strip(handle) === undefined);
      return withBareIds([...await view.othersHandles(context), ...foreign]);
    },
  };
}

/**
 * The part of the cluster that the reconcile loop of one router needs.
 *
 * Unlike in an audit, no id with another router's prefix counts as another driver's: that volume's bare id may be one of
 * this router's, too, and would keep its export on for ever.
 */
export function reconciledOfRouter(ids: VolumeIdPrefix, view: ClusterView): ReconciledCluster {
  if (!ids.isOfSeveral) return view;
  const { allAttachments, names, volumeContext } = viewOfRouter(ids, view, false);
  const othersHandles = async (context: CallContext) => withBareIds(await view.othersHandles(context));
  return { allAttachments, names, volumeContext, othersHandles };
}

/** The handles, with and without routers' prefixes: a driver of another name may name the same router differently. */
function withBareIds(handles: Iterable<string>): Set<string> {
  return new Set([...handles].flatMap((handle) => [handle, splitHandle(handle).id]));
}

/** The item with the router's own id; an empty list when its volume is another router's. */
function stripped<Item extends { readonly volumeId: string }>(ids: VolumeIdPrefix, item: Item): Item[] {
  const volumeId = ids.strip(item.volumeId);
  return volumeId === undefined ? [] : [{ ...item, volumeId }];
}
