import { publishedNodes } from "./attachments.ts";
import type { Cluster } from "./cluster.ts";
import { driverName } from "./driver.ts";
import { type Event, type Lease, paths, type Volume } from "./objects.ts";
import { until } from "./waiting.ts";

/** What begins the names of the annotations that show people who holds a volume. */
const prefix = "csi.rds.srvlab.io/";
/** RFC 3339, of whole seconds, in UTC. */
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** What a PersistentVolume says of who holds it. */
export interface Shown {
  readonly node: string | undefined;
  readonly since: string | undefined;
  readonly readOnly: string | undefined;
}

/** What a PersistentVolume says of who holds it. */
export function shownOn({ metadata: { annotations = {} } }: Volume): Shown {
  return {
    node: annotations[`${prefix}attached-node`],
    since: annotations[`${prefix}attach-time`],
    readOnly: annotations[`${prefix}readonly`],
  };
}

/** Waits until every PersistentVolume says of who holds it what the driver says; answers how many say that somebody does. */
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

/** What is wrong about the annotations of PersistentVolumes, a line each; the driver's record is what counts. */
export async function shownWrongly(cluster: Cluster): Promise<string[]> {
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

/** Waits for an event of that reason about an object of that name, and answers it. */
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

/** Waits until a controller holds the Lease of the loops, other than `former`; answers which. */
export async function leaseHolder(cluster: Cluster, signal: AbortSignal, former = ""): Promise<string> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${cluster.chart.namespace}/leases`;
  return await until("a controller to hold the Lease", async () => {
    const lease = await cluster.api.find<Lease>(`${path}/${driverName}-controller`);
    const { holderIdentity = "", renewTime = "", leaseDurationSeconds = 0 } = lease?.spec ?? {};
    const isFresh = Date.now() - Date.parse(renewTime) < leaseDurationSeconds * 1000;
    return isFresh && holderIdentity !== "" && holderIdentity !== former && holderIdentity;
  }, { limitSeconds: 60, signal });
}

function volumes(cluster: Cluster): Promise<readonly Volume[]> {
  return cluster.api.list<Volume>(paths.volumes);
}
