import { digest } from "../volume/model/digest.ts";
import type { EventText } from "../volume/rules/event_text.ts";
import type { Metadata } from "./api.ts";
import type { ObjectRef } from "./persistent_volumes.ts";

/** What an event is about. */
export interface Involved extends ObjectRef {
  readonly kind: "PersistentVolume" | "PersistentVolumeClaim";
}

/** How often something was seen, and when first and last, in `Clock.now()` milliseconds. */
export interface Sightings {
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** An event as the API has it. */
export interface RawEvent {
  readonly metadata?: Metadata;
  readonly count?: number;
}

/** The longest message that the API takes, in bytes. */
const mostMessageBytes = 1_024;

/** A message without the sizes and seconds in it, which differ from time to time; names keep their numbers. */
export function withoutFigures(message: string): string {
  return message.replace(/=[0-9]+\b|\b[0-9]+(?= s\b)/g, "#");
}

/**
 * What makes two events the same one, seen twice: the object, the reason, and the message but for its figures. The same on
 * every controller, so that one that restarts goes on counting.
 */
export function eventName({ name, uid }: Involved, { reason, message }: EventText): string {
  return `${name.slice(0, 230)}.${digest(JSON.stringify([uid, reason, withoutFigures(message)]), 16)}`;
}

/** Path of the events about an object: beside it, or in `default` where it has no namespace. */
export function eventsPath({ namespace }: Involved): string {
  return `/api/v1/namespaces/${namespace ?? "default"}/events`;
}

/** A new event. */
export function newEvent(involved: Involved, text: EventText, seen: Sightings, component: string) {
  const { kind, namespace, name, uid } = involved;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: eventName(involved, text), namespace: namespace ?? "default" },
    involvedObject: { apiVersion: "v1", kind, ...(namespace === undefined ? {} : { namespace }), name, uid },
    type: text.type,
    reason: text.reason,
    message: cut(text.message),
    count: seen.count,
    firstTimestamp: rfc3339(seen.firstMs),
    lastTimestamp: rfc3339(seen.lastMs),
    source: { component },
    reportingComponent: component,
    reportingInstance: component,
  };
}

/** What changes of an event that was seen again. */
export function eventPatch({ message }: EventText, { count, lastMs }: Sightings) {
  return { message: cut(message), count, lastTimestamp: rfc3339(lastMs) };
}

function cut(message: string): string {
  const bytes = new TextEncoder().encode(message);
  if (bytes.length <= mostMessageBytes) return message;
  // A character that was cut in two is left out.
  return new TextDecoder().decode(bytes.subarray(0, mostMessageBytes - 3)).replace(/\ufffd+$/, "") + "...";
}

function rfc3339(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace(".000Z", "Z");
}
