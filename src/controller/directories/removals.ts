import { pathBeforeDeletion } from "../../volume/model/directory/names.ts";
import { runLimited } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import type { RemovalPart, RemovalView } from "../../volume/ports/directory_store.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { assertNothingElseIn, getShareDisk } from "../../volume/rules/directory_share.ts";
import { untilDone } from "../until_done.ts";
import { type RemovalDeps, shareOf } from "./deps.ts";
import { listMarked } from "./read.ts";

/** How often it looks for deleted directories that it does not know of, in milliseconds. */
const scanEveryMs = 600_000;
/** How long a failed removal waits for its next try, in milliseconds. */
const retryMs = 60_000;
/** How long a look for deleted directories may take, in milliseconds. */
const scanTimeoutMs = 60_000;
/** How many deleted directories it remembers after their removal. */
const maxDeleted = 4096;
/** How long one try to remove a directory may take, in milliseconds. */
const removalTimeoutMs = 3_600_000;

/**
 * Removes deleted directories in the background, one after the other. Their names say that they were deleted, so that a
 * controller that starts finds what an earlier one has left.
 */
export class DirectoryRemovals {
  readonly #deps: RemovalDeps;
  /** Paths, with the monotonic time of their next try. */
  readonly #waiting = new Map<string, number>();
  /** Paths that deleted directories had before, the last ones. */
  readonly #deleted = new Set<string>();
  #wake = Promise.withResolvers<void>();

  constructor(deps: RemovalDeps) {
    this.#deps = deps;
  }

  /** Takes a deleted directory; see `deletedPath()`. */
  add(path: string): void {
    this.#deleted.add(pathBeforeDeletion(path));
    const [eldest] = this.#deleted;
    if (this.#deleted.size > maxDeleted) this.#deleted.delete(eldest!);
    if (this.#waiting.has(path)) return;
    this.#waiting.set(path, 0);
    this.#report();
    this.#wake.resolve();
  }

  /** Whether this process knows of a deleted directory that had this path. */
  has(original: string): boolean {
    return this.#deleted.has(original);
  }

  /** Removes what was deleted and what is added, until the signal ends it. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#scan(signal), this.#work(signal)]);
  }

  async #scan(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const about = {
      name: "find-deleted-directories",
      timeoutMs: scanTimeoutMs,
      complaint: "cannot look for deleted directories yet",
    };
    while (!signal.aborted) {
      await untilDone(this.#deps, about, signal, async (context) => {
        const marked = await listMarked(this.#deps, context);
        for (const { path, isDeleted } of marked) if (isDeleted) this.add(path);
      });
      await clock.sleep(scanEveryMs, signal).catch(() => {});
    }
  }

  async #work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = this.#next();
      if (next === undefined) await this.#pause(signal);
      else await this.#try(next, signal);
    }
  }

  /**
   * The path whose turn it is; undefined when none is due. As long as a late renaming may take a directory that is made again
   * under the name, the deleted one stays, and shows that it is a name to be careful with.
   */
  #next(): string | undefined {
    const { clock, inDoubt } = this.#deps;
    const nowMs = clock.monotonicMs();
    const isDue = ([path, dueMs]: readonly [string, number]) =>
      dueMs <= nowMs && !inDoubt.mayStillApply(pathBeforeDeletion(path), "");
    return this.#waiting.entries().find(isDue)?.[0];
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const sleeping = this.#deps.clock.sleep(retryMs, AbortSignal.any([signal, over.signal])).catch(() => {});
    await Promise.race([this.#wake.promise, sleeping]);
    over.abort();
    this.#wake = Promise.withResolvers();
  }

  async #try(path: string, signal: AbortSignal): Promise<void> {
    const { clock, notes } = this.#deps;
    const about = { name: "remove-directory", timeoutMs: removalTimeoutMs, signal };
    try {
      await runLimited(clock, about, (context) => removeDirectory(this.#deps, path, context));
      this.#waiting.delete(path);
    } catch (error) {
      if (signal.aborted) return;
      this.#waiting.set(path, clock.monotonicMs() + retryMs);
      notes.warn("a deleted directory cannot be removed yet; retrying", { path, reason: messageOf(error) });
    }
    this.#report();
  }

  #report(): void {
    this.#deps.events.occurred({ kind: "removals-pending", count: this.#waiting.size });
  }
}

/**
 * Removes a deleted directory with everything in it. A router may refuse to remove a directory that is not empty: then
 * its files go first, and its directories from the deepest up.
 *
 * @throws {VolumeError} precondition when another disk is mounted in it, unavailable when something is left
 */
async function removeDirectory(deps: RemovalDeps, path: string, context: CallContext): Promise<void> {
  const { store } = deps;
  const before = await store.left(path, context);
  if (isGone(deps, before, path)) return;
  const whole = await remove(deps, path, { kind: "whole" }, context);
  if (isGone(deps, whole, path)) return;
  await remove(deps, path, { kind: "files" }, context);
  let depth = 0;
  while (await store.directoriesBelow(path, depth + 1, context) > 0) depth++;
  for (; depth > 0; depth--) await remove(deps, path, { kind: "level", depth }, context);
  const last = await remove(deps, path, { kind: "whole" }, context);
  if (isGone(deps, last, path)) return;
  throw new VolumeError(
    "unavailable",
    `Cannot remove the directory because ${last.count} files are left in it: path=${path}`,
  );
}

async function remove(
  { store, events }: RemovalDeps,
  path: string,
  part: RemovalPart,
  context: CallContext,
): Promise<RemovalView> {
  const { after, refusal } = await store.remove(path, part, context);
  if (after.exists) {
    const refused = refusal === undefined ? {} : { refusal };
    events.occurred({ kind: "removal-progress", path, part: part.kind, left: after.count, ...refused });
  }
  return after;
}

/** @throws {VolumeError} when it is not known, or the directory must not be removed */
function isGone({ settings }: RemovalDeps, view: RemovalView, path: string): boolean {
  getShareDisk(view, shareOf(settings));
  assertNothingElseIn(view, path, settings.settleMs);
  return !view.exists;
}
