import type { OwnedVolume } from "./ownership.ts";

/** A volume that two nodes share for longer than a migration may take. */
export interface OverdueMigration {
  readonly volumeId: string;
  /** The node that has it longest. */
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
  const writers = record.holders.filter(({ mode }) => mode === "multi-node-multi-writer")
    .toSorted((a, b) => a.sinceSeconds - b.sinceSeconds);
  const [older, newer] = writers;
  if (older === undefined || newer === undefined) return undefined;
  // From when they were two: how long the first one was alone is its own business.
  if (nowMs / 1000 - newer.sinceSeconds <= limitSeconds) return undefined;
  return { volumeId: stored.id, older: older.nodeId, newer: newer.nodeId, limitSeconds };
}
