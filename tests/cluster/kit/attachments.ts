import assert from "node:assert/strict";
import type { Cluster } from "./cluster.ts";
import { type Attachment, attachmentOf, type Event, paths, type Volume } from "./objects.ts";
import { until } from "./waiting.ts";

/** A VolumeAttachment to be made: a PersistentVolume and a node. */
export interface Pairing {
  readonly name: string;
  readonly volume: string;
  readonly node: string;
}

/** Assigns volumes to nodes in turn. */
export function pair(volumes: readonly string[], nodes: readonly string[]): Pairing[] {
  return volumes.map((volume, index) => ({
    name: `attachment-${index}`,
    volume,
    node: nodes[index % nodes.length] ?? "",
  }));
}

/** Requests all of them at once. */
export async function attach(cluster: Cluster, pairings: readonly Pairing[]): Promise<void> {
  await Promise.all(
    pairings.map(({ name, volume, node }) =>
      cluster.api.create(paths.attachments, attachmentOf(name, volume, node))
    ),
  );
}

/** Requests the deletion of all of them at once. */
export async function detach(cluster: Cluster, pairings: readonly Pairing[]): Promise<void> {
  await Promise.all(pairings.map(({ name }) => cluster.api.remove(`${paths.attachments}/${name}`)));
}

/** Waits until so many attachments are attached. */
export async function attached(cluster: Cluster, count: number, signal: AbortSignal): Promise<void> {
  const list = () => cluster.api.list<Attachment>(paths.attachments);
  const are = async () => (await list()).filter(({ status }) => status?.attached === true).length;
  const state = async () => {
    const errors = (await list()).flatMap(({ status }) => status?.attachError?.message ?? []);
    return `${await are()} are; ${errors.slice(0, 3).join("; ")}`;
  };
  const what = `${count} volumes to be attached`;
  await until(what, async () => await are() === count, { limitSeconds: 240, signal, state });
}

/** Waits until there is no attachment any more. */
export async function detached(cluster: Cluster, signal: AbortSignal): Promise<void> {
  const count = async () => (await cluster.api.list(paths.attachments)).length;
  await until("every volume to be detached", async () => await count() === 0, {
    limitSeconds: 240,
    signal,
    state: async () => `${await count()} attachments are left`,
  });
}

/** The NQNs under which the router exports volumes. */
export async function exportsOf(cluster: Cluster): Promise<readonly string[]> {
  return (await cluster.router.control<{ readonly exports: readonly string[] }>("/state")).exports;
}

/**
 * Asserts that API, driver and router agree. Each volume is at the node of its attachment and at no other, and is
 * exported under the NQN in this node's publish context; nothing else is exported.
 */
export async function assertAgreement(cluster: Cluster, pairings: readonly Pairing[]): Promise<string> {
  const attachments = await cluster.api.list<Attachment>(paths.attachments);
  const volumes = await cluster.api.list<Volume>(paths.volumes);
  const handles = new Map(volumes.map(({ metadata, spec }) => [metadata.name, spec.csi?.volumeHandle ?? ""]));
  const reported = attachments.map(({ metadata, status }) => {
    assert.equal(status?.attached, true, `${metadata.name} is not attached`);
    return status.attachmentMetadata?.["nqn"] ?? "";
  });
  assert.deepEqual(reported.toSorted(), (await exportsOf(cluster)).toSorted());
  assert.equal(new Set(reported).size, pairings.length);
  const published = await publishedNodes(cluster);
  for (const { name, volume, node } of pairings) {
    const handle = handles.get(volume) ?? "";
    assert.deepEqual(published.get(handle), [node], `${volume} is to be at ${node}`);
    const nqn = attachments.find(({ metadata }) => metadata.name === name)?.status?.attachmentMetadata
      ?.["nqn"];
    assert(nqn?.includes(handle), `${name} was told ${nqn} of ${handle}`);
  }
  return `${pairings.length} volumes, each at its node alone, under the NQN that it was told`;
}

/** The nodes of each volume, according to the driver. */
async function publishedNodes(cluster: Cluster): Promise<ReadonlyMap<string, readonly string[]>> {
  const { entries } = await cluster.controller.clients.controller.call("ListVolumes", {});
  return new Map(
    entries.map(({ volume, status }) => [volume?.volumeId ?? "", status?.publishedNodeIds ?? []]),
  );
}

/** The prefix of the annotations that show people the holders of a volume. */
const prefix = "csi.rds.srvlab.io/";
/** RFC 3339, in whole seconds and UTC. */
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** The holder in the annotations of a PersistentVolume. */
interface Shown {
  readonly node: string | undefined;
  readonly since: string | undefined;
  readonly readOnly: string | undefined;
}

/** Reads the holder from the annotations of a PersistentVolume. */
export function shownOn({ metadata: { annotations = {} } }: Volume): Shown {
  return {
    node: annotations[`${prefix}attached-node`],
    since: annotations[`${prefix}attach-time`],
    readOnly: annotations[`${prefix}readonly`],
  };
}

/** Waits until the annotations of every PersistentVolume agree with the driver; returns how many show a holder. */
export async function allShown(cluster: Cluster, signal: AbortSignal, limitSeconds = 30): Promise<number> {
  return await until("the volumes' objects to say who holds them", async () => {
    const wrong = await shownWrongly(cluster);
    if (wrong.length > 0) return undefined;
    const held = (await volumes(cluster)).filter((volume) => shownOn(volume).node !== undefined);
    return { count: held.length };
  }, {
    limitSeconds,
    signal,
    state: async () => (await shownWrongly(cluster)).slice(0, 5).join("; "),
  }).then(({ count }) => count);
}

/** The wrong annotations of PersistentVolumes, one line each; the driver's record is right. */
async function shownWrongly(cluster: Cluster): Promise<string[]> {
  const published = await publishedNodes(cluster);
  return (await volumes(cluster)).flatMap((volume) => {
    const nodes = published.get(volume.spec.csi?.volumeHandle ?? "") ?? [];
    const { node, since, readOnly } = shownOn(volume);
    const isRight = nodes.length === 0
      ? node === undefined && since === undefined && readOnly === undefined
      : node === nodes.join(",") && time.test(since ?? "") && readOnly === "false";
    return isRight ? [] : [`${volume.metadata.name} is at ${nodes} and says ${node}, ${since}, ${readOnly}`];
  });
}

/** Waits for an event with that reason on an object of that name, and returns it. */
export async function eventAbout(
  cluster: Cluster,
  reason: string,
  name: string,
  signal: AbortSignal,
): Promise<Event> {
  return await until(`an event ${reason} about ${name}`, async () => {
    const events = await cluster.api.list<Event>(paths.events);
    return events.find((one) => one.reason === reason && one.involvedObject.name === name);
  }, { limitSeconds: 30, signal });
}

function volumes(cluster: Cluster): Promise<readonly Volume[]> {
  return cluster.api.list<Volume>(paths.volumes);
}
