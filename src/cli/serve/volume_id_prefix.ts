import type { VolumeLocking } from "../../controller/deps.ts";
import type { ClusterAttachment, ClusterObjects, MigrationPairs } from "../../volume/ports/cluster_ports.ts";
import type { ClusterView } from "../../volume/ports/cluster_view.ts";
import type { ControllerEvent, ControllerEvents } from "../../volume/ports/controller_events.ts";
import { type HandleBorder, splitHandle } from "../../volume/model/handles.ts";
import type { VolumeProjection } from "../../volume/ports/projection.ts";

// What the controller of one of several routers sees of the cluster: only what is about its own volumes, by the ids that it
// knows. What is another router's does not exist here, so that nothing of it can be judged, withdrawn or deleted.

/** The locks of calls, which go by handles. */
export function borderedLocks(locks: VolumeLocking, border: HandleBorder): VolumeLocking {
  return { tryTake: (keys, holder) => locks.tryTake(keys.map((key) => border.handleOf(key)), holder) };
}

/** Where people are shown who holds what. */
export function borderedProjection(projection: VolumeProjection, border: HandleBorder): VolumeProjection {
  return {
    show: (id, record) => projection.show(border.handleOf(id), record),
    beforeLook: () => projection.beforeLook(),
    showAll: (look, volumes) =>
      projection.showAll(
        look,
        volumes.map((volume) => ({
          ...volume,
          stored: { ...volume.stored, id: border.handleOf(volume.stored.id) },
        })),
      ),
  };
}

/** Who hears of events by handles. */
export function borderedEvents(events: ControllerEvents, border: HandleBorder): ControllerEvents {
  return {
    happened: (event) => events.happened(outside(event, border)),
    audited: (counts) => events.audited?.(counts),
    looked: (figures, atMs) => events.looked?.(figures, atMs),
  };
}

function outside(event: ControllerEvent, border: HandleBorder): ControllerEvent {
  if (event.kind !== "out-of-space") return { ...event, volumeId: border.handleOf(event.volumeId) };
  const { about } = event;
  return { ...event, about: typeof about === "string" ? border.handleOf(about) : about };
}

/** Who may share a volume. */
export function borderedPairs(pairs: MigrationPairs, border: HandleBorder): MigrationPairs {
  return { reasonAgainst: (id, signal) => pairs.reasonAgainst(border.handleOf(id), signal) };
}

/** What the loops compare a router with. An attachment that cannot be told may be about any router's volume. */
export function borderedObjects(objects: ClusterObjects, border: HandleBorder): ClusterObjects {
  return {
    attachments: async (signal) =>
      (await objects.attachments(signal)).flatMap((one): ClusterAttachment[] => {
        if (one.volumeId === undefined) return [one];
        const volumeId = border.idOf(one.volumeId);
        return volumeId === undefined ? [] : [{ ...one, volumeId }];
      }),
    volumeContext: (id) => objects.volumeContext(border.handleOf(id)),
  };
}

/**
 * What the cluster uses.
 *
 * Every id that another handle has behind its prefix is somebody else's here: whoever mixes the names of routers up has
 * nothing deleted for it.
 *
 * @param tellsStrays whether attachments whose volume cannot be told are this router's to tell of
 */
export function borderedView(view: ClusterView, border: HandleBorder, tellsStrays: boolean): ClusterView {
  const ownOf = <Item extends { readonly volumeId: string }>(items: readonly Item[]): Item[] =>
    items.flatMap((item) => {
      const volumeId = border.idOf(item.volumeId);
      return volumeId === undefined ? [] : [{ ...item, volumeId }];
    });
  return {
    volumes: async (context) => ownOf(await view.volumes(context)),
    attachments: async (context) => ownOf(await view.attachments(context)),
    strayAttachments: async (context) => tellsStrays ? await view.strayAttachments(context) : [],
    assertAttachmentsTell: (context) => view.assertAttachmentsTell(context),
    othersHandles: async (context) => {
      const foreign = (await view.volumes(context)).map(({ volumeId }) => volumeId)
        .filter((handle) => border.idOf(handle) === undefined);
      const all = [...await view.othersHandles(context), ...foreign];
      return new Set(all.flatMap((handle) => [handle, splitHandle(handle).id]));
    },
  };
}
