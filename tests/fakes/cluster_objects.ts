import type { ClusterAttachment, ClusterObjects } from "../../src/volume/ports/cluster_ports.ts";
import { VolumeError } from "../../src/volume/errors.ts";

/** A cluster in memory, as far as the loops look at it. */
export class FakeClusterObjects implements ClusterObjects {
  /** By volume and node. */
  list: ClusterAttachment[] = [];
  readonly contexts = new Map<string, Readonly<Record<string, string>>>();
  /** Volumes that the cluster has no object of. */
  readonly unnamed = new Set<string>();
  /** Whether nothing can be read. */
  away = false;
  /** How often it was asked. */
  asked = 0;
  /** What happens each time it is asked, before it answers. */
  onAsked: (asked: number) => void = () => {};

  attachments(): Promise<readonly ClusterAttachment[]> {
    this.onAsked(++this.asked);
    if (this.away) return Promise.reject(new VolumeError("unavailable", "the API server is away"));
    return Promise.resolve([...this.list]);
  }

  volumeContext(volumeId: string): Readonly<Record<string, string>> | undefined {
    return this.unnamed.has(volumeId) ? undefined : this.contexts.get(volumeId) ?? {};
  }

  /** Attaches a volume to a node. */
  attach(volumeId: string, nodeName: string, over: Partial<ClusterAttachment> = {}): void {
    this.list.push({ volumeId, nodeName, attached: true, deleting: false, publishContext: {}, ...over });
  }
}
