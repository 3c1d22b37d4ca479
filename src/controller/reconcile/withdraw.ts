import type { OwnedVolume } from "../../volume/model/record.ts";
import { assertOwned } from "../../volume/rules/ownership.ts";
import { readView } from "../load.ts";
import { changeByRule, type Decision } from "../records/loop.ts";
import { withdrawal } from "../records/steps.ts";
import type { View } from "../records/view.ts";
import type { ControllerCall } from "../deps.ts";

/** What came of it; without a volume it is not the one any more that nobody wants. */
interface Withdrawn {
  readonly volume?: OwnedVolume;
}

/**
 * Withdraws a volume if it is still as it was when that was decided: nobody who has been answered meanwhile that it is published
 * may lose it. Two commands; one when it is another one. Answers whether it was done.
 *
 * @param seen the volume as it was then
 * @param knownCounter of the latest epoch that the cluster knows: the next one will be later
 * @throws {VolumeError} precondition, unavailable, busy
 */
export async function withdrawUnwanted(
  call: ControllerCall,
  seen: OwnedVolume,
  knownCounter: number,
): Promise<boolean> {
  const { id, comment, imagePath } = seen.stored;
  const verb = "reconcile";
  const rule = ({ volume: stored }: View): Promise<Decision<Withdrawn>> => {
    const volume = stored && assertOwned(stored, call.settings.cluster, verb);
    const isSame = volume?.stored.comment === comment && volume.stored.imagePath === imagePath;
    if (!isSame) return Promise.resolve({ answer: {} });
    const step = withdrawal(call, volume, knownCounter);
    return Promise.resolve({ step, next: (after) => ({ volume: after }) });
  };
  const read = () => readView(call, id, verb);
  const { volume } = await changeByRule(call, { id, verb, first: await read(), read }, rule);
  if (volume !== undefined) call.projection.show(id, volume.record);
  return volume !== undefined;
}
