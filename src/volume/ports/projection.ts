import type { OwnedVolume, VolumeRecord } from "../model/record.ts";

/** The holders of a volume, as people are shown them. */
export interface Attachment {
  /** Node ids; the one that has held it longest is first. */
  readonly nodes: readonly string[];
  /** Since when the first of them has held it, in seconds since the Unix epoch. */
  readonly sinceSeconds: number;
  /** Whether none of them may write. */
  readonly readOnly: boolean;
}

/** Returns the holders from a record; undefined when it has none. */
export function attachmentOf({ holders }: Pick<VolumeRecord, "holders">): Attachment | undefined {
  const [first, ...others] = holders.toSorted((a, b) => a.sinceSeconds - b.sinceSeconds);
  if (first === undefined) return undefined;
  return {
    nodes: [first, ...others].map(({ nodeId }) => nodeId),
    sinceSeconds: first.sinceSeconds,
    readOnly: holders.every(({ readOnly, mode }) =>
      readOnly || mode === "multi-node-reader-only" || mode === "single-node-reader-only"
    ),
  };
}

/** Shows people which nodes hold which volume. It is written afterwards and never read; no method throws or waits. */
export interface VolumeProjection {
  /** Shows a volume that a call read back while it held the volume's lock. */
  show(id: string, record: Pick<VolumeRecord, "holders">): void;
  /** To be called before all volumes are read: what `show()` gets from then on is newer than that read. */
  beforeRead(): number;
  /** Shows the volumes of a read. Volumes that it does not contain stay as they are: their absence is not proven. */
  showAll(reading: number, volumes: readonly OwnedVolume[]): void;
}

/** A projection that shows nothing. */
export const noProjection: VolumeProjection = { show() {}, beforeRead: () => 0, showAll() {} };
