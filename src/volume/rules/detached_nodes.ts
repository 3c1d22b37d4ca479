import type { UnfencedNode } from "../model/record.ts";

/** The fields of a Node that show whether its kubelet has given up a volume. */
export interface ClusterNode {
  /** Seconds since the Unix epoch; undefined when it is not known. */
  readonly createdSeconds: number | undefined;
  /** See `machineHash()`; undefined when it is not known. */
  readonly machine: string | undefined;
  readonly isReady: boolean;
  /** When its kubelet last reported its state, in seconds since the Unix epoch; undefined when it is not known. */
  readonly heartbeatSeconds: number | undefined;
  readonly isOutOfService: boolean;
  /** Names of the volumes that its kubelet uses. */
  readonly volumesInUse: readonly string[];
}

/** What the cluster shows of a node that has left a volume. */
export interface DetachedNodeView {
  /** Names of the Nodes on which this driver is registered under that node id. */
  readonly nodeNames: readonly string[];
  /** Undefined when there is no Node of that name. */
  readonly node: ClusterNode | undefined;
  /** Whether a VolumeAttachment of the volume to that node exists that is not being deleted. */
  readonly isAttached: boolean;
  /** Name of the volume among `volumesInUse`. */
  readonly volumeInUse: string;
  /** Seconds since the Unix epoch. */
  readonly nowSeconds: number;
}

/**
 * How old a kubelet's last report may be, in seconds: it reports every five minutes when nothing has changed
 * (`nodeStatusReportFrequency`).
 */
const maxHeartbeatAgeSeconds = 6 * 60;

/**
 * Why it is unknown whether a node that has left a volume has given it up, for people; undefined when its kubelet says
 * so. That is a hint and no proof, because kubelets lose track of volumes (kubernetes issues 101791, 121937). It may
 * let a third node join a shared block volume, which the kernel has flushed when its last user closed it, and shortens
 * no grace period.
 */
export function reasonAgainstDetached(
  { sinceSeconds, machine }: Pick<UnfencedNode, "sinceSeconds" | "machine">,
  view: DetachedNodeView,
): string | undefined {
  const [name] = view.nodeNames;
  const { node } = view;
  if (name === undefined) return "this driver is registered on no node of its id";
  if (view.nodeNames.length > 1) return `several nodes have its id: ${view.nodeNames.join(", ")}`;
  if (node === undefined) return `there is no Node of its name: ${name}`;
  if (view.isAttached) return `its VolumeAttachment is not being deleted: ${name}`;
  if (sinceSeconds === undefined) return `the record does not say how long it held the volume: ${name}`;
  if (node.createdSeconds === undefined || node.createdSeconds > sinceSeconds) {
    return `its Node is younger than its hold of the volume: ${name}`;
  }
  const silent = reasonKubeletIsSilent({ name, node, machine, nowSeconds: view.nowSeconds });
  if (silent !== undefined) return silent;
  return node.volumesInUse.includes(view.volumeInUse) ? `its kubelet uses the volume: ${name}` : undefined;
}

/**
 * Why the cluster's objects may not show what runs on a holder's machine, for people; undefined when its kubelet
 * reports.
 *
 * @param holder its Node, with the machine that the record names
 */
export function reasonKubeletIsSilent(
  { name, node, machine, nowSeconds }: {
    readonly name: string;
    readonly node: ClusterNode;
    readonly machine: string | undefined;
    /** Seconds since the Unix epoch. */
    readonly nowSeconds: number;
  },
): string | undefined {
  if (!isSameMachine(machine, node.machine)) return `another machine has its name now: ${name}`;
  if (node.isOutOfService) return `its Node is out of service: ${name}`;
  if (!node.isReady) return `its Node is not ready: ${name}`;
  const heartbeatSeconds = node.heartbeatSeconds ?? -Infinity;
  return nowSeconds - heartbeatSeconds > maxHeartbeatAgeSeconds
    ? `its kubelet has not reported for more than ${maxHeartbeatAgeSeconds / 60} minutes: ${name}`
    : undefined;
}

/** An unknown machine matches every machine. */
function isSameMachine(one: string | undefined, other: string | undefined): boolean {
  return one === undefined || other === undefined || one === other;
}
