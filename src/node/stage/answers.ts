import { VolumeError } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/ports.ts";
import type { NodeWorld } from "../deps.ts";

/**
 * Whether the file system mounted at a path still gives its own root. An xfs that was shut down by an error does not,
 * and the mount table says nothing of that.
 */
export async function rootAnswers(world: NodeWorld, path: string, context: CallContext): Promise<boolean> {
  try {
    return (await world.paths.info(path, context))?.kind === "directory";
  } catch (error) {
    context.signal.throwIfAborted();
    if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline")) return false;
    throw error;
  }
}
