import { limitCall } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";

/** How long undoing may take. It goes on after the caller has gone away, but not forever. */
const undoMs = 30_000;

/** A step that undoes another. */
export type UndoStep = (context: CallContext) => Promise<unknown>;

/** The steps that would undo what a call has done so far. */
export class Undo {
  readonly #steps: { readonly name: string; readonly step: UndoStep }[] = [];

  /** Adds a step, before or after the step that it undoes; it must be harmless when there is nothing to undo. */
  add(name: string, step: UndoStep): void {
    this.#steps.push({ name, step });
  }

  /** Runs every step in reverse, even after one fails; returns what failed. */
  async run(context: CallContext): Promise<readonly string[]> {
    const failures: string[] = [];
    for (const { name, step } of this.#steps.toReversed()) {
      try {
        await step(context);
      } catch (error) {
        failures.push(`${name}: ${messageOf(error)}`);
      }
    }
    return failures;
  }
}

/**
 * Runs `action`. When it throws, undoes its steps in reverse, also when the call was cancelled, and throws the same
 * error.
 *
 * @throws {VolumeError} unavailable, or still busy, when something could not be undone: after a final error an
 *   orchestrator would never call again to clean up
 */
export async function withUndo<T>(
  clock: Clock,
  context: CallContext,
  action: (undo: Undo) => Promise<T>,
): Promise<T> {
  const undo = new Undo();
  try {
    return await action(undo);
  } catch (error) {
    const late = new VolumeError("deadline", `Cannot undo within ${undoMs} ms`);
    const own = { requestId: context.requestId, signal: new AbortController().signal };
    using limited = limitCall(clock, own, undoMs, late);
    const failures = await undo.run(limited.context);
    if (failures.length === 0) throw error;
    const first = messageOf(error);
    const kind = VolumeError.is(error, "busy") ? "busy" : "unavailable";
    throw new VolumeError(kind, `${first}; and it could not be undone: ${failures.join("; ")}`, {
      cause: error,
    });
  }
}
