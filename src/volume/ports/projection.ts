import type { OwnedVolume, VolumeRecord } from "../model/record.ts";

/** Who holds a volume, as people are shown it. */
export interface Attachment {
  /** Node ids, the one that has held it longest first. */
  readonly nodes: readonly string[];
  /** Since when the first of them has, in seconds since the Unix epoch. */
  readonly sinceSeconds: number;
  /** Whether none of them may write. */
  readonly readOnly: boolean;
}

/** What a record says about who holds the volume; undefined when nobody does. */
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

/**
 * Where people are shown who holds which volume. It is written after the fact and never believed; no method throws or
 * waits.
 */
export interface VolumeProjection {
  /** What was read back of a volume by a call that has it to itself. */
  show(id: string, record: Pick<VolumeRecord, "holders">): void;
  /** To be asked for before a look at all volumes: what is shown from then on is newer than that look. */
  beforeRead(): number;
  /** What a look showed. Volumes that it does not contain are left as they are: absence is a claim. */
  showAll(reading: number, volumes: readonly OwnedVolume[]): void;
}

/** Shows nobody anything. */
export const noProjection: VolumeProjection = { show() {}, beforeRead: () => 0, showAll() {} };
