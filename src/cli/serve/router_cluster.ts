import type { ControllerDeps } from "../../controller/deps.ts";
import type { ClusterAttachment, ClusterObjects } from "../../volume/ports/cluster_ports.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import type { ControllerEvent } from "../../volume/ports/controller_events.ts";
import { splitHandle, type VolumeIdPrefix } from "../../volume/model/ids.ts";

/** What the controllers of all routers share: it knows volumes by the ids that clients know. */
export type SharedDeps =
  & Pick<ControllerDeps, "events" | "locks">
  & Partial<Pick<ControllerDeps, "projection" | "pairs" | "consents" | "clusterView">>;

/**
 * What the controllers share, as the controller of one router sees it: only what is about its own volumes, by the ids that
 * it knows. Volumes of other routers do not exist there, so that none of them can be judged, withdrawn or deleted.
 *
 * @param reportsUnknown whether this router's audits report attachments whose volume cannot be told
 */
export function sharedWithRouter(
  ids: VolumeIdPrefix,
  shared: SharedDeps,
  reportsUnknown: boolean,
): SharedDeps {
  if (!ids.isOfSeveral) return shared;
  const { events, locks, projection, pairs, consents, clusterView } = shared;
  return {
    events: {
      occurred: (event) => events.occurred(withPrefix(ids, event)),
      audited: (counts) => events.audited?.(counts),
      inventoryRead: (totals, atMs) => {
        const volumes = totals.volumes.map((volume) => ({ ...volume, id: ids.add(volume.id) }));
        events.inventoryRead?.({ ...totals, volumes }, atMs);
      },
    },
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
    ...pairs && { pairs: { reasonAgainst: (id, signal) => pairs.reasonAgainst(ids.add(id), signal) } },
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
  if (event.kind !== "out-of-space") return { ...event, volumeId: ids.add(event.volumeId) };
  const { about } = event;
  return { ...event, about: typeof about === "string" ? ids.add(about) : about };
}

/** What a router's loops compare it with. An attachment that cannot be told may be about any router's volume. */
export function objectsOfRouter(ids: VolumeIdPrefix, objects: ClusterObjects): ClusterObjects {
  return {
    attachments: async (signal) =>
      (await objects.attachments(signal)).flatMap((one): ClusterAttachment[] =>
        one.volumeId === undefined ? [one] : stripped(ids, { ...one, volumeId: one.volumeId })
      ),
    volumeContext: (id) => objects.volumeContext(ids.add(id)),
  };
}

/**
 * What the cluster uses of one router.
 *
 * Every id that stands behind another router's prefix counts as another driver's here: whoever mixes the names of routers
 * up has nothing deleted for it.
 *
 * @param reportsUnknown as for {@linkcode sharedWithRouter}
 */
export function viewOfRouter(ids: VolumeIdPrefix, view: ClusterView, reportsUnknown: boolean): ClusterView {
  if (!ids.isOfSeveral) return view;
  return {
    volumes: async (context) => (await view.volumes(context)).flatMap((one) => stripped(ids, one)),
    attachments: async (context) => (await view.attachments(context)).flatMap((one) => stripped(ids, one)),
    snapshotHandles: async (context) => {
      const handles = await view.snapshotHandles(context);
      return handles && new Set([...handles].flatMap((handle) => [handle, splitHandle(handle).id]));
    },
    unknownVolumeAttachments: async (context) =>
      reportsUnknown ? await view.unknownVolumeAttachments(context) : [],
    assertAttachmentsReadable: (context) => view.assertAttachmentsReadable(context),
    othersHandles: async (context) => {
      const foreign = (await view.volumes(context)).map(({ volumeId }) => volumeId)
        .filter((handle) => ids.strip(handle) === undefined);
      const all = [...await view.othersHandles(context), ...foreign];
      return new Set(all.flatMap((handle) => [handle, splitHandle(handle).id]));
    },
  };
}

/** The item by the router's own id; nothing when its volume is another router's. */
function stripped<Item extends { readonly volumeId: string }>(ids: VolumeIdPrefix, item: Item): Item[] {
  const volumeId = ids.strip(item.volumeId);
  return volumeId === undefined ? [] : [{ ...item, volumeId }];
}
