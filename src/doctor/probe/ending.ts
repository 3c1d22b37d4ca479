import { VolumeError } from "../../volume/errors.ts";
import { byHand, cleanUp } from "./clean_up.ts";
import type { ScratchPlace } from "./leftovers.ts";
import { Line } from "./session.ts";
import type { ProbeOptions } from "./options.ts";

/** Something is left on the router, or it is not known that nothing is. */
export class NotClean extends VolumeError {
  constructor(message: string, cause: unknown) {
    super("precondition", message, { cause });
  }
}

/**
 * Cleans up, on a line of its own that nothing stops: a probe that was stopped has to clean up as well.
 *
 * @param lines the connections that the probe used
 * @param failure what ended the probe; undefined when it went through
 * @throws {NotClean} when something stays, or nobody knows
 */
export async function leaveNothing(
  lines: readonly Line[],
  place: ScratchPlace,
  failure: unknown,
  options: ProbeOptions,
): Promise<void> {
  const mayComeLate = lines.some((line) => line.lost > 0);
  for (const line of lines) line.close();
  options.say("cleaning up");
  const cleaner = new Line({ ...options, signal: new AbortController().signal });
  try {
    await removeAll(cleaner, place, mayComeLate, options);
    options.say("nothing is left");
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    const first = failure instanceof Error ? `${failure.message}\n` : "";
    throw new NotClean(`${first}${words}`, error);
  } finally {
    cleaner.close();
  }
}

/**
 * Removes what probes have made.
 *
 * @param mayComeLate whether some command ended without a word, and may still run
 * @throws {VolumeError} unavailable when the router cannot be asked; precondition when something stays
 */
export async function removeAll(
  line: Line,
  place: ScratchPlace,
  mayComeLate: boolean,
  { clock, say }: ProbeOptions,
): Promise<void> {
  const left = await cleanUp({ line, place, clock, mayComeLate, say }).catch((cause) => {
    throw new VolumeError(
      "unavailable",
      `Cannot clean up after the probe as the router cannot be asked: base-path=${place.basePath}; the next probe of ` +
        "this folder does, or look for names that begin with rds-csi-probe- yourself",
      { cause },
    );
  });
  if (left.length === 0) return;
  throw new VolumeError(
    "precondition",
    `Cannot remove everything that the probe has made; by hand it goes with:\n${byHand(left).join("\n")}`,
  );
}
