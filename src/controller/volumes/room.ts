import { assertRoom, getPool } from "../../volume/rules/capacity.ts";
import type { ControllerCall } from "../deps.ts";
import type { Room } from "../records/steps.ts";
import type { View } from "../records/view.ts";

/**
 * Room for so many bytes in a folder, as far as the view tells.
 *
 * @param unneeded paths of unfinished copies that already take a part of it
 * @throws {VolumeError} exhausted where every disk was read, and there is too little
 */
export function roomFor(
  { promised, settings }: ControllerCall,
  view: View,
  folder: string,
  bytes: bigint,
  unneeded: readonly string[] = [],
): Room {
  const pool = getPool(view, folder);
  const { mountPoint } = pool;
  if (view.all !== undefined) {
    assertRoom({ ...view, volumes: view.all }, folder, bytes, settings.overcommit, unneeded);
    return { mountPoint, bytes };
  }
  // How full a pool is that was not read is only remembered.
  const isAmple = view.isAssumed
    ? (uncounted = 0n) => promised.amplePool(mountPoint, uncounted) !== undefined
    : (uncounted = 0n) => bytes <= pool.freeBytes && promised.isAmple(pool, uncounted);
  return { mountPoint, bytes, isAmple };
}
