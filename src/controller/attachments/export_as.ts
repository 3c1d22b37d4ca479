import { VolumeError } from "../../volume/errors.ts";
import type { StoredVolume } from "../../volume/model/inventory.ts";
import type { OwnedVolume, VolumeRecord } from "../../volume/model/record.ts";
import { nqnOf } from "../../volume/rules/publish.ts";
import { isToBeKeptUnmounted } from "../../volume/rules/router_uses.ts";
import { writeRecord } from "../change.ts";
import type { ControllerCall, ControllerDeps } from "../deps.ts";

/** How a volume is to be exported. */
interface Export {
  readonly record: VolumeRecord;
  readonly port: number;
}

/** Writes the record and turns the export on, in one command, and believes only what is read back. */
export async function exportAs(
  call: ControllerCall,
  volume: OwnedVolume,
  { record, port }: Export,
): Promise<OwnedVolume> {
  const nqn = recordNqn(call, volume, record);
  const unmounted = isToBeKeptUnmounted(volume.stored);
  const mount = unmounted ? { neverMounted: true } as const : {};
  const wanted = (after: StoredVolume) =>
    after.exported && after.exportNqn === nqn && after.exportPort === port &&
    after.routerUses === undefined && !(unmounted && after.mayBeMounted);
  return await writeRecord(call, "publish", volume, record, wanted, { export: { nqn, port }, ...mount });
}

/**
 * The NQN of the export of a volume in the epoch of that record.
 *
 * @throws {VolumeError} internal when it has none
 */
export function recordNqn(
  deps: ControllerDeps,
  volume: OwnedVolume,
  record: VolumeRecord,
): string {
  if (record.epoch === undefined) {
    const { id } = volume.stored;
    throw new VolumeError("internal", `Cannot name the export of a volume without an epoch: volume=${id}`);
  }
  return nqnOf(volume, record.epoch, deps.settings.nqnPrefix);
}
