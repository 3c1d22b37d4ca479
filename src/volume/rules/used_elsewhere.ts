import type { OwnedVolume } from "../model/record.ts";

/** Whether a node may use a volume: it is exported, or a node holds it. */
export function isInUse({ stored, record }: OwnedVolume): boolean {
  return stored.exported || record.holders.length > 0;
}

/**
 * Whether a volume is in use, and not by this cluster's word. Another cluster of the same id may use it, for example one
 * whose etcd was restored beside the original: then no volume of that mark is known to be this cluster's alone.
 */
export function isUsedElsewhere(volume: OwnedVolume, isNamed: (volumeId: string) => boolean): boolean {
  return isInUse(volume) && !isNamed(volume.stored.id);
}

/** The command that ends the use of a volume, for people. */
export function howToWithdraw(volumeId: string): string {
  return `rds-csi withdraw ${volumeId} --vouch`;
}
