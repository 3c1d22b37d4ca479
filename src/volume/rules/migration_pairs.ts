import type { Holder, OwnedVolume, VolumeRecord } from "../model/record.ts";

/** A pod that uses a claim, or may own a pod that does. */
export interface ClaimUser {
  readonly name: string;
  readonly uid: string;
  /** Name of the Node that it runs on; "" while it has none. */
  readonly nodeName: string;
  /** Whether it uses the claim, and has not ended. */
  readonly usesClaim: boolean;
  /** Whether it has completed or failed, by whoever's word. */
  readonly hasEnded: boolean;
  /** Uid of the virtual machine instance that it runs; undefined when it runs none. */
  readonly machine: string | undefined;
  /** Uids of its owners: a disk that is plugged in later has its own pod, which the machine's pod owns. */
  readonly owners: readonly string[];
}

/** A node that has a volume, or asks for it. */
export interface PairNode {
  readonly nodeId: string;
  /** Names of the Nodes on which this driver is registered under that id. */
  readonly nodeNames: readonly string[];
}

/**
 * Why nodes do not share a volume for the migration of one virtual machine, for people; undefined when they do.
 *
 * Each of them needs a pod of that machine that has not ended. The pod of a node that is lost may be gone, or have been
 * set to Failed by a controller that has not heard of that node either: its machine may write on, beside another one
 * that was started in its place.
 *
 * @param pods every pod of the claim's namespace that uses it or runs a virtual machine
 * @param nodes the volume's holders, and the node that asks for it
 */
export function reasonAgainstPair(
  pods: readonly ClaimUser[],
  nodes: readonly PairNode[],
): string | undefined {
  const launchers = new Map(pods.filter(({ machine }) => machine !== undefined).map((pod) => [pod.uid, pod]));
  const users = pods.filter(({ usesClaim }) => usesClaim).map((pod) => {
    const launcher = [pod.uid, ...pod.owners].map((uid) => launchers.get(uid)).find((one) =>
      one !== undefined
    );
    return { name: pod.name, nodeName: pod.nodeName, machine: launcher?.machine, launcher };
  });
  const other = users.find(({ machine }) => machine === undefined);
  if (users.length === 0) return "no pod uses its claim";
  if (other !== undefined) return `the pod ${other.name} uses it, which runs no virtual machine of KubeVirt`;
  const several = new Set(users.map(({ machine }) => machine));
  const names = users.map(({ name }) => name).join(", ");
  if (several.size > 1) return `pods of several virtual machines use it: ${names}`;
  // The pod of a plugged-in disk ends a little later than the pod that owns it.
  const running = users.filter(({ launcher }) => launcher?.hasEnded === false);
  if (new Set(running.map(({ launcher }) => launcher)).size > 2) {
    return `more than two pods of its virtual machine use it: ${names}`;
  }
  const used = new Set(running.map(({ nodeName }) => nodeName));
  return nodes.map((node) => reasonAgainstNode(node, used)).find((reason) => reason !== undefined);
}

function reasonAgainstNode(
  { nodeId, nodeNames }: PairNode,
  used: ReadonlySet<string>,
): string | undefined {
  const [name, ...others] = nodeNames;
  if (name === undefined) return `this driver is registered on no Node under the id ${nodeId}`;
  if (others.length > 0) return `several Nodes have the id ${nodeId}: ${nodeNames.join(", ")}`;
  return used.has(name) ? undefined : `no pod of its virtual machine runs on ${name}`;
}

/** Whether two nodes share a volume so that its user can move from one to the other. */
export function isMigrating({ holders }: VolumeRecord): boolean {
  return writersOf(holders).length > 1;
}

/** A volume that two nodes share for longer than a migration may take. */
export interface OverdueMigration {
  readonly volumeId: string;
  /** The node that has held it longest. */
  readonly older: string;
  readonly newer: string;
  readonly limitSeconds: number;
}

/** The migration of a volume, if it takes too long; undefined otherwise. */
export function overdueMigration(
  { stored, record }: OwnedVolume,
  limitSeconds: number,
  nowMs: number,
): OverdueMigration | undefined {
  const writers = writersOf(record.holders).toSorted((a, b) => a.sinceSeconds - b.sinceSeconds);
  const [older, newer] = writers;
  if (older === undefined || newer === undefined) return undefined;
  // The time counts from the second node: the first one may have been alone for long.
  if (nowMs / 1000 - newer.sinceSeconds <= limitSeconds) return undefined;
  return { volumeId: stored.id, older: older.nodeId, newer: newer.nodeId, limitSeconds };
}

function writersOf(holders: readonly Holder[]): Holder[] {
  return holders.filter(({ mode }) => mode === "multi-node-multi-writer");
}
