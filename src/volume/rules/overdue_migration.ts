import type { Holder, OwnedVolume, VolumeRecord } from "../model/record.ts";

/** Whether two nodes share a volume so that its user can move from one to the other. */
export function isMigrating({ holders }: VolumeRecord): boolean {
  return writersOf(holders).length > 1;
}

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
  const writers = writersOf(record.holders).toSorted((a, b) => a.sinceSeconds - b.sinceSeconds);
  const [older, newer] = writers;
  if (older === undefined || newer === undefined) return undefined;
  // From when they were two: how long the first one was alone is its own business.
  if (nowMs / 1000 - newer.sinceSeconds <= limitSeconds) return undefined;
  return { volumeId: stored.id, older: older.nodeId, newer: newer.nodeId, limitSeconds };
}

function writersOf(holders: readonly Holder[]): Holder[] {
  return holders.filter(({ mode }) => mode === "multi-node-multi-writer");
}
