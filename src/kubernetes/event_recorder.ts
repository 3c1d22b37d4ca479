import { messageOf } from "../volume/error_messages.ts";
import { digest } from "../volume/model/digest.ts";
import { printable } from "../volume/model/printable.ts";
import type { ControllerEvent, ControllerEvents } from "../volume/ports/controller_events.ts";
import { type EventText, eventText } from "../volume/rules/event_text.ts";
import type { Clock, Random } from "../volume/ports/system.ts";
import { ApiError, type KubernetesApi } from "./api.ts";
import type { Metadata, ObjectRef } from "./objects.ts";
import type { PersistentVolumes } from "./persistent_volumes.ts";
import { RateLimiter } from "./rate_limiter.ts";

/** Options of {@linkcode EventRecorder}. */
export interface EventRecorderOptions {
  readonly api: KubernetesApi;
  readonly volumes: PersistentVolumes;
  readonly clock: Clock;
  readonly random: Random;
  readonly driverName: string;
  /** Called with a warning when events cannot be written. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** Requests per second on average, and after a pause. */
const limits = { perSecond: 5, burst: 25 };

/** The same event is written no more often, in milliseconds; in between it is counted. */
const repeatMs = 60_000;

/** An event that cannot be written for this long is dropped, and one that is not seen for this long is forgotten. */
const keepMs = 30 * 60_000;

/** The maximum number of remembered or waiting events; beyond it, the one that was seen longest ago is dropped. */
const maxEvents = 1_000;

/** The longest message that the API accepts, in bytes. */
const maxMessageBytes = 1_024;

/** The object of an event. */
interface Involved extends ObjectRef {
  readonly kind: "PersistentVolume" | "PersistentVolumeClaim";
}

/** How often an event was seen, and when first and last, in `Clock.now()` milliseconds. */
interface Sightings {
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** An event in the API's form. */
interface RawEvent {
  readonly metadata?: Metadata;
  readonly count?: number;
}

interface Remembered {
  readonly about: Extract<ControllerEvent, { kind: "out-of-space" }>["about"];
  text: EventText;
  firstMs: number;
  lastMs: number;
  /** Sightings that are not written yet. */
  unwritten: number;
  /** Earliest time of the next write, `monotonicMs()`. */
  dueMs: number;
}

/**
 * Records events on the objects that people look at: the PersistentVolume and its claim. A repeated event is counted,
 * not written again; nothing waits for it.
 */
export class EventRecorder implements ControllerEvents {
  readonly #options: EventRecorderOptions;
  readonly #rateLimiter: RateLimiter;
  readonly #closing = new AbortController();
  /** In the order in which they were last seen. */
  readonly #events = new Map<string, Remembered>();
  #running: Promise<void> = Promise.resolve();
  /** Whether the waiting events will be read once more. */
  #works = false;
  #complained = false;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#rateLimiter = new RateLimiter(options, limits);
  }

  /** Events with sightings that are still to be written. */
  get pending(): number {
    return [...this.#events.values()].filter(({ unwritten }) => unwritten > 0).length;
  }

  occurred(event: ControllerEvent): void {
    if (event.kind === "audited" || event.kind === "inventory-read" || event.kind === "hardware-read") return;
    if (this.#closing.signal.aborted) return;
    const text = eventText(event);
    const about = "about" in event ? event.about : event.volumeId;
    const key = JSON.stringify([about, text.reason, withoutNumbers(text.message)]);
    const nowMs = this.#options.clock.now();
    const known = this.#events.get(key) ?? { about, firstMs: nowMs, unwritten: 0, dueMs: -Infinity };
    this.#events.delete(key);
    this.#events.set(key, { ...known, text, lastMs: nowMs, unwritten: known.unwritten + 1 });
    this.#forget();
    if (this.#works) return;
    this.#works = true;
    this.#running = this.#work();
  }

  /** Writes nothing more; resolves when no request is under way. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the controller stops"));
    await this.#running;
  }

  #forget(): void {
    const oldestMs = this.#options.clock.now() - keepMs;
    for (const [key, { lastMs }] of this.#events) {
      if (lastMs > oldestMs && this.#events.size <= maxEvents) return;
      this.#events.delete(key);
    }
  }

  /** Writes events until none is left. */
  async #work(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    // Not within the call in which the event happened.
    await Promise.resolve();
    for (;;) {
      const next = this.#earliest();
      if (next === undefined) {
        this.#works = false;
        return;
      }
      const [key, event] = next;
      const waitMs = event.dueMs - clock.monotonicMs();
      try {
        // A later event may be due earlier, so the wait is short.
        if (waitMs > 0) {
          await clock.sleep(Math.min(waitMs, 1_000), signal);
          continue;
        }
        await this.#rateLimiter.turn(signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      await this.#tryWrite(key, event);
    }
  }

  #earliest(): [string, Remembered] | undefined {
    let earliest: [string, Remembered] | undefined;
    for (const entry of this.#events) {
      if (entry[1].unwritten > 0 && !(earliest && earliest[1].dueMs <= entry[1].dueMs)) earliest = entry;
    }
    return earliest;
  }

  async #tryWrite(key: string, event: Remembered): Promise<void> {
    const { unwritten } = event;
    try {
      const refusals: ApiError[] = [];
      for (const involved of await this.#involved(event)) {
        await this.#write(involved, event).catch((error) => {
          if (!isFinal(error)) throw error;
          refusals.push(error);
        });
      }
      this.#rateLimiter.succeeded();
      this.#complained &&= refusals.length > 0;
      for (const refusal of refusals) this.#complain(refusal);
      this.#settle(key, unwritten);
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#rateLimiter.failed(error);
      this.#complain(error);
      // Others come first then.
      const now = this.#events.get(key);
      if (now !== undefined) now.dueMs = this.#options.clock.monotonicMs();
    }
    this.#forget();
  }

  /** Sightings from the time of the write still have to be written, later. */
  #settle(key: string, written: number): void {
    const now = this.#events.get(key);
    if (now === undefined) return;
    now.unwritten -= written;
    now.dueMs = this.#options.clock.monotonicMs() + repeatMs;
  }

  async #involved({ about }: Remembered): Promise<readonly Involved[]> {
    if (typeof about !== "string") return [{ kind: "PersistentVolumeClaim", ...about }];
    const volume = await this.#options.volumes.find(about, this.#closing.signal);
    if (volume === undefined) return [];
    return [
      { kind: "PersistentVolume", name: volume.name, uid: volume.uid },
      ...volume.claim === undefined ? [] : [{ kind: "PersistentVolumeClaim" as const, ...volume.claim }],
    ];
  }

  async #write(involved: Involved, event: Remembered): Promise<void> {
    const { api, driverName } = this.#options;
    const { signal } = this.#closing;
    const path = eventsPath(involved);
    const seen = { count: event.unwritten, firstMs: event.firstMs, lastMs: event.lastMs };
    try {
      await api.request({
        method: "POST",
        path,
        body: newEvent(involved, event.text, seen, driverName),
        signal,
      });
    } catch (error) {
      if (!ApiError.is(error, 409)) throw error;
      const name = eventName(involved, event.text);
      const before = await api.request<RawEvent>({ method: "GET", path: `${path}/${name}`, signal });
      const count = (before.count ?? 1) + seen.count;
      const body = eventPatch(event.text, { ...seen, count });
      await api.request({ method: "PATCH", path: `${path}/${name}`, body, signal });
    }
  }

  /** Warns once until it works again. */
  #complain(error: unknown): void {
    if (this.#complained) return;
    this.#complained = true;
    const reason = messageOf(error);
    this.#options.warn("cannot write events on the cluster's objects", { waiting: this.pending, reason });
  }
}

/**
 * Whether a retry cannot succeed: the object or its namespace is being deleted, the server finds the event invalid, or the
 * controller's role allows no events there.
 */
function isFinal(error: unknown): error is ApiError {
  return ApiError.is(error, 400, 403, 404, 422);
}

/** A message without the sizes and seconds in it, which change; names keep their numbers. */
function withoutNumbers(message: string): string {
  return message.replace(/=[0-9]+\b|\b[0-9]+(?= s\b)/g, "#");
}

/**
 * The identity of an event: the object, the reason, and the message without its changing numbers. It is the same on
 * every controller, so that one that restarts goes on counting.
 */
function eventName({ name, uid }: Involved, { reason, message }: EventText): string {
  return `${name.slice(0, 230)}.${digest(JSON.stringify([uid, reason, withoutNumbers(message)]), 16)}`;
}

/** Path of the events of an object: in its namespace, or in `default` if it has none. */
function eventsPath({ namespace }: Involved): string {
  return `/api/v1/namespaces/${namespace ?? "default"}/events`;
}

/** A new event. */
function newEvent(involved: Involved, text: EventText, seen: Sightings, component: string) {
  const { kind, namespace, name, uid } = involved;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: eventName(involved, text), namespace: namespace ?? "default" },
    involvedObject: { apiVersion: "v1", kind, ...(namespace === undefined ? {} : { namespace }), name, uid },
    type: text.type,
    reason: text.reason,
    message: shown(text.message),
    count: seen.count,
    firstTimestamp: rfc3339(seen.firstMs),
    lastTimestamp: rfc3339(seen.lastMs),
    source: { component },
    reportingComponent: component,
    reportingInstance: component,
  };
}

/** The changed fields of a repeated event. */
function eventPatch({ message }: EventText, { count, lastMs }: Sightings) {
  return { message: shown(message), count, lastTimestamp: rfc3339(lastMs) };
}

/** A message for people, of at most the length that the API accepts. */
function shown(message: string): string {
  const text = printable(message);
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= maxMessageBytes) return text;
  // A character that was cut in two is left out.
  return new TextDecoder().decode(bytes.subarray(0, maxMessageBytes - 3)).replace(/\ufffd+$/, "") + "...";
}

function rfc3339(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}
