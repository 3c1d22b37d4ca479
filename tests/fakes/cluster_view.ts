import type {
  ClusterAttachment,
  ClusterView,
  ClusterVolume,
  NodeAttachment,
  UnknownVolumeAttachment,
} from "../../src/volume/ports/cluster_view.ts";
import type { ObjectName } from "../../src/volume/model/name_plates.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import type { ContextValues } from "../../src/volume/model/publish_context.ts";
import { parsePublishedExport } from "../../src/volume/model/parse_context.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";

/** A cluster whose answers the test sets. */
export class FakeClusterView implements ClusterView {
  used: readonly ClusterVolume[] = [];
  attached: readonly NodeAttachment[] = [];
  /** Handles of other drivers. */
  others: readonly string[] = [];
  /** Handles of snapshots. */
  snapshots: readonly string[] | undefined;
  /** What people call volumes and snapshots. */
  named: readonly ObjectName[] = [];
  orphans: readonly UnknownVolumeAttachment[] = [];
  readable = true;
  /** Whether VolumeAttachments are made. */
  attachRequired = true;
  /** Every attachment, by volume and node, as the loops see them. */
  list: ClusterAttachment[] = [];
  readonly contexts = new Map<string, Readonly<Record<string, string>>>();
  /** Volumes without an object in the cluster. */
  readonly unnamed = new Set<string>();
  /** How often every attachment was read. */
  asked = 0;
  /** How often the latest epoch of a volume was asked for. */
  askedEpochs = 0;
  /** Called each time, before the answer. */
  onAsked: (asked: number) => void = () => {};

  volumes(): Promise<readonly ClusterVolume[]> {
    return this.#answer(() => this.used);
  }

  othersHandles(_context: CallContext): Promise<ReadonlySet<string>> {
    return this.#answer(() => new Set(this.others));
  }

  snapshotHandles(): Promise<ReadonlySet<string> | undefined> {
    return this.#answer(() => this.snapshots === undefined ? undefined : new Set(this.snapshots));
  }

  names(): Promise<readonly ObjectName[]> {
    return this.#answer(() => this.named);
  }

  attachments(): Promise<readonly NodeAttachment[]> {
    return this.#answer(() => this.attached);
  }

  latestEpoch(volumeId: string): Promise<number> {
    this.askedEpochs++;
    const own = this.attached.filter((one) => one.volumeId === volumeId);
    return this.#answer(() => Math.max(0, ...own.map(({ epochCounter }) => epochCounter)));
  }

  unknownVolumeAttachments(): Promise<readonly UnknownVolumeAttachment[]> {
    return this.#answer(() => this.orphans);
  }

  allAttachments(): Promise<readonly ClusterAttachment[]> {
    this.onAsked(++this.asked);
    return this.#answer(() => [...this.list]);
  }

  objectsOf(volumeId: string): Promise<readonly string[]> {
    return Promise.resolve(
      this.used.filter((one) => one.volumeId === volumeId).map(({ name }) => name).toSorted(),
    );
  }

  volumeContext(volumeId: string): Readonly<Record<string, string>> | undefined {
    return this.unnamed.has(volumeId) ? undefined : this.contexts.get(volumeId) ?? {};
  }

  /** Attaches a volume to a node, as the loops see it. */
  attach(
    volumeId: string,
    nodeName: string,
    { publishContext = {}, ...over }: Partial<ClusterAttachment> & { publishContext?: ContextValues } = {},
  ): void {
    const published = parsePublishedExport(publishContext);
    this.list.push({ volumeId, nodeName, attached: true, deleting: false, published, ...over });
  }

  async assertAttachmentsReadable(): Promise<void> {
    await this.#answer(() => undefined);
    if (!this.attachRequired) throw new VolumeError("precondition", "Cannot determine who has a volume");
  }

  #answer<T>(value: () => T): Promise<T> {
    if (this.readable) return Promise.resolve(value());
    return Promise.reject(new VolumeError("unavailable", "Cannot reach the API server"));
  }
}

/** A PersistentVolume of ext4 for one node at a time. */
export function aClusterVolume(volumeId: string, over: Partial<ClusterVolume> = {}): ClusterVolume {
  return {
    name: `pv-of-${volumeId}`,
    volumeId,
    access: "mount",
    fsType: "ext4",
    accessModes: ["ReadWriteOnce"],
    readOnly: false,
    attributes: {},
    ...over,
  };
}

/** A complete VolumeAttachment. */
export function anAttachment(
  volumeId: string,
  nodeId: string,
  over: Partial<NodeAttachment> = {},
): NodeAttachment {
  return { volumeId, nodeId, attached: true, sinceSeconds: 1_700_000_000, epochCounter: 0, ...over };
}
