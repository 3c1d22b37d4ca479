import { messageOf } from "../volume/error_messages.ts";
import type { Clock, Random } from "../volume/ports/system.ts";
import { type Attachment, attachmentOf, type VolumeProjection } from "../volume/ports/projection.ts";
import type { OwnedVolume, VolumeRecord } from "../volume/model/record.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import { annotationPrefix, volumesPath } from "./objects.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";
import { RateLimiter } from "./rate_limiter.ts";

/** Options of {@linkcode AnnotationProjection}. */
export interface ProjectionOptions {
  readonly api: KubernetesApi;
  readonly volumes: PersistentVolumes;
  readonly clock: Clock;
  readonly random: Random;
  /** Called with a warning when annotations cannot be written. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /**
   * Asks the router for the holders of a volume: undefined when there is none, "unknown" when that will stay unknown
   * for long.
   */
  readonly latest: (id: string, signal: AbortSignal) => Promise<Attachment | "unknown" | undefined>;
}

/** Writes per second on average; each takes two requests. A thousand volumes take less than a minute. */
const limits = { perSecond: 20, burst: 20 };

/** Writes under way at once. */
const workers = 4;

/**
 * After how long a shown state may be out of date, because another controller may have changed it: then the router is
 * asked again.
 */
const staleMs = 15_000;

/** The node, since when it holds the volume, and whether it may only read. */
const annotationNames = [
  `${annotationPrefix}attached-node`,
  `${annotationPrefix}attach-time`,
  `${annotationPrefix}readonly`,
] as const;

/** A state to be written. */
interface Shown {
  readonly attachment: Attachment | undefined;
  readonly shownMs: number;
  /** Whether the router has to be asked again. */
  readonly doubtful: boolean;
}

/**
 * Shows on each PersistentVolume which nodes hold it, in annotations. Only the latest state of each volume is written,
 * over the object's present state. A write that meets a newer object starts again, and asks the router first.
 */
export class AnnotationProjection implements VolumeProjection {
  readonly #options: ProjectionOptions;
  readonly #rateLimiter: RateLimiter;
  readonly #closing = new AbortController();
  /** The states to be written, the longest waiting first. */
  readonly #waiting = new Map<string, Shown>();
  readonly #busy = new Set<string>();
  /** The order in which volumes were shown, to distinguish a read from newer states. */
  readonly #shownAt = new Map<string, number>();
  readonly #running = new Set<Promise<void>>();
  /** The number of workers that will read the waiting states once more: `#running` lags behind. */
  #workers = 0;
  #turn = 0;
  #complained = false;

  constructor(options: ProjectionOptions) {
    this.#options = options;
    this.#rateLimiter = new RateLimiter(options, limits);
  }

  /** The number of volumes whose annotations are still to be written. */
  get pending(): number {
    return this.#waiting.size + this.#busy.size;
  }

  show(id: string, record: Pick<VolumeRecord, "holders">): void {
    this.#shownAt.set(id, ++this.#turn);
    this.#note(id, attachmentOf(record));
  }

  beforeRead(): number {
    return this.#turn;
  }

  /**
   * Writes only differences from the last list of objects: a thousand volumes with correct annotations cost nothing.
   */
  showAll(reading: number, volumes: readonly OwnedVolume[]): void {
    for (const { stored: { id }, record } of volumes) {
      if ((this.#shownAt.get(id) ?? 0) > reading || this.#busy.has(id)) continue;
      const object = this.#options.volumes.known(id);
      const attachment = attachmentOf(record);
      if (object !== undefined && !areSo(object.annotations, annotationsFor(attachment))) {
        this.#note(id, attachment);
      }
    }
    // Volumes that no call concerns any more need not be remembered.
    for (const [id, at] of this.#shownAt) if (at <= reading) this.#shownAt.delete(id);
  }

  /** Writes nothing more; resolves when no request is under way. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the controller stops"));
    this.#waiting.clear();
    await Promise.all(this.#running);
  }

  #note(id: string, attachment: Attachment | undefined): void {
    if (this.#closing.signal.aborted) return;
    const shownMs = this.#options.clock.monotonicMs();
    this.#waiting.delete(id);
    this.#waiting.set(id, { attachment, shownMs, doubtful: false });
    if (this.#workers >= workers) return;
    this.#workers++;
    const worker: Promise<void> = this.#work().finally(() => this.#running.delete(worker));
    this.#running.add(worker);
  }

  async #work(): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      try {
        await this.#rateLimiter.turn(signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      const next = this.#next();
      if (next === undefined) {
        this.#workers--;
        return;
      }
      const [id, shown] = next;
      this.#waiting.delete(id);
      this.#busy.add(id);
      const again = await this.#tryWrite(id, shown);
      this.#busy.delete(id);
      // A state that was shown meanwhile is newer.
      if (again !== undefined && !this.#waiting.has(id) && !signal.aborted) this.#waiting.set(id, again);
    }
  }

  #next(): [string, Shown] | undefined {
    for (const entry of this.#waiting) if (!this.#busy.has(entry[0])) return entry;
    return undefined;
  }

  /** Writes one state; returns what has to be tried again. */
  async #tryWrite(id: string, shown: Shown): Promise<Shown | undefined> {
    try {
      await this.#write(id, shown);
      this.#rateLimiter.succeeded();
      this.#complained = false;
      return undefined;
    } catch (error) {
      if (this.#closing.signal.aborted || ApiError.is(error, 404)) return undefined;
      const again = { ...shown, doubtful: true };
      if (ApiError.is(error, 409)) return again;
      this.#rateLimiter.failed(error);
      this.#complain(id, error);
      return again;
    }
  }

  async #write(id: string, shown: Shown): Promise<void> {
    const { api, volumes, clock, latest } = this.#options;
    const { signal } = this.#closing;
    const known = await volumes.find(id, signal);
    const object = known === undefined ? undefined : await volumes.read(known, signal);
    if (object === undefined) return;
    const isOld = shown.doubtful || clock.monotonicMs() - shown.shownMs > staleMs;
    // After the object was read: a change by another controller from here on causes a conflict.
    const attachment = isOld ? await latest(id, signal) : shown.attachment;
    if (attachment === "unknown") return;
    const annotations = annotationsFor(attachment);
    if (areSo(object.annotations, annotations)) return;
    await api.request({
      method: "PATCH",
      path: `${volumesPath}/${object.name}`,
      body: { metadata: { resourceVersion: object.resourceVersion, annotations } },
      signal,
    });
  }

  /** Warns once until it works again. */
  #complain(id: string, error: unknown): void {
    if (this.#complained) return;
    this.#complained = true;
    const reason = messageOf(error);
    const fields = { volume: id, waiting: this.#waiting.size + 1, reason };
    this.#options.warn("cannot write the volume's holders to its PersistentVolume; retrying", fields);
  }
}

/** The annotations for the holders of a volume: all of them, null for those to be removed. */
function annotationsFor(attachment: Attachment | undefined): Readonly<Record<string, string | null>> {
  const [node, time, readOnly] = annotationNames;
  if (attachment === undefined) return { [node]: null, [time]: null, [readOnly]: null };
  return {
    [node]: attachment.nodes.join(","),
    // RFC 3339, in whole seconds.
    [time]: new Date(attachment.sinceSeconds * 1000).toISOString().replace(/\.000Z$/, "Z"),
    [readOnly]: String(attachment.readOnly),
  };
}

/** Whether a volume has these annotations already. */
function areSo(
  annotations: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string | null>>,
): boolean {
  return Object.entries(wanted).every(([name, value]) => (annotations[name] ?? null) === value);
}
