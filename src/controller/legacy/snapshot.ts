import { assertAbsenceProven } from "../../volume/rules/absence.ts";
import { assertNoEarlierSnapshot } from "../../volume/model/legacy_snapshots.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import type { ControllerWorld } from "../deps.ts";

/**
 * Finds a snapshot of the earlier driver provably gone, disk and image. One command. Nothing of it is ever removed: with
 * no record in its comment it could be somebody's disk that is called the same.
 *
 * @throws {VolumeError} precondition while anything of it is there, saying what it is and how a person removes it;
 * unavailable when nothing is and that proves nothing
 */
export async function assertEarlierGone(
  world: ControllerWorld,
  verb: string,
  id: string,
  context: CallContext,
): Promise<void> {
  const { basePaths, settleMs } = world.settings;
  const view = await world.store.view(id, id, context);
  assertNoEarlierSnapshot(verb, id, view, basePaths);
  assertAbsenceProven(view, basePaths, settleMs);
}
