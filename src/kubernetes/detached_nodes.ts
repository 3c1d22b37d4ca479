import { limitSignal } from "../async/deadline.ts";
import { VolumeError } from "../volume/errors.ts";
import { messageOf } from "../volume/error_messages.ts";
import { nodeDigest } from "../volume/model/record.ts";
import type { DetachedNode, DetachedNodes } from "../volume/ports/cluster_ports.ts";
import type { Clock } from "../volume/ports/system.ts";
import { reasonAgainstDetached } from "../volume/rules/detached_nodes.ts";
import type { KubernetesApi } from "./api.ts";
import {
  attachmentsPath,
  csiNodesPath,
  findNode,
  listKept,
  parseAttachment,
  parseCsiNode,
  type RawAttachment,
  type RawCsiNode,
  type VolumeAttachment,
} from "./objects.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";

/** Options of {@linkcode KubernetesDetachedNodes}. */
export interface DetachedNodesOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly driverName: string;
  readonly volumes: PersistentVolumes;
}

/** How long a call waits for all answers together, in milliseconds. */
const timeoutMs = 5_000;

/** Whether nodes have given up volumes, from the present VolumeAttachments, CSINodes and Nodes. */
export class KubernetesDetachedNodes implements DetachedNodes {
  readonly #options: DetachedNodesOptions;

  constructor(options: DetachedNodesOptions) {
    this.#options = options;
  }

  async reasonAgainst(detached: DetachedNode, signal: AbortSignal): Promise<string | undefined> {
    const late = new VolumeError("deadline", "it takes too long");
    using limited = limitSignal(this.#options.clock, signal, timeoutMs, late);
    try {
      return await this.#reasonAgainst(detached, limited.signal);
    } catch (error) {
      signal.throwIfAborted();
      const reason = messageOf(error);
      return `the cluster does not say whether it uses the volume: ${reason}`;
    }
  }

  async #reasonAgainst(detached: DetachedNode, signal: AbortSignal): Promise<string | undefined> {
    const { api, clock, driverName, volumes } = this.#options;
    const { volumeId } = detached;
    const [volume, attachments, csiNodes] = await Promise.all([
      volumes.current(volumeId, signal),
      listKept(
        api,
        { path: attachmentsPath, signal },
        (raw: RawAttachment) => parseAttachment(raw, driverName),
      ),
      listKept(api, { path: csiNodesPath, signal }, (raw: RawCsiNode) => parseCsiNode(raw, driverName)),
    ]);
    if (volume === undefined) return "its PersistentVolume is gone";
    const nodeNames = csiNodes.flatMap(({ name, nodeId }) =>
      nodeId !== undefined && nodeDigest(nodeId) === detached.nodeDigest ? [name] : []
    );
    const [name] = nodeNames;
    const onNode = attachments.filter(({ deleting, nodeName }) => !deleting && nodeName === name);
    const isAttached = await this.#isAmong(onNode, volumeId, signal);
    return reasonAgainstDetached(detached, {
      nodeNames,
      // Read last, so that it is no older than the attachments.
      node: name === undefined ? undefined : await findNode(api, name, signal),
      isAttached,
      volumeInUse: `kubernetes.io/csi/${driverName}^${volumeId}`,
      nowSeconds: Math.floor(clock.now() / 1000),
    });
  }

  /**
   * Whether one of the attachments is the volume's. Several PersistentVolumes may name one volume; unknown ones are
   * listed.
   */
  async #isAmong(
    attachments: readonly VolumeAttachment[],
    volumeId: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { volumes } = this.#options;
    const isKnown = ({ volumeName }: VolumeAttachment) =>
      volumeName === undefined || volumes.all.some(({ name }) => name === volumeName);
    if (!attachments.every(isKnown)) await volumes.list(signal);
    const names = new Set(volumes.all.filter((one) => one.volumeId === volumeId).map(({ name }) => name));
    return attachments.some(({ volumeName, inlineHandle }) =>
      inlineHandle === volumeId || (volumeName !== undefined && names.has(volumeName))
    );
  }
}
