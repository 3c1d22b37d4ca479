import type { HistoryEvent } from "./events.ts";

type Event<Kind extends HistoryEvent["kind"]> = Extract<HistoryEvent, { kind: Kind }>;

export const volume = "pvc-1";
export const bytes = 1n << 30n;
export const [first, second, reissued] = [
  "nqn:pvc-1:1-00000001",
  "nqn:pvc-1:2-00000002",
  "nqn:pvc-1:1-00000003",
];

export function call(
  number: number,
  verb: Event<"call">["verb"],
  over: Partial<Event<"call">> = {},
): HistoryEvent {
  return { kind: "call", call: number, verb, of: volume, ...over };
}

export function ok(number: number, over: Partial<Event<"answer">> = {}): HistoryEvent {
  return { kind: "answer", call: number, ...over };
}

export function image(
  value: string | undefined,
  exported?: string,
  over: Partial<Event<"image">> = {},
): HistoryEvent {
  const open = exported === undefined ? [] : [exported];
  return { kind: "image", of: volume, bytes, exists: true, value, exported, open, ...over };
}

export function kernel(
  node: string,
  connected: readonly string[],
  staged = connected.length > 0,
): HistoryEvent {
  return { kind: "kernel", node, of: volume, connected, staged };
}

export function formats(node: string, value: string): HistoryEvent {
  return { kind: "format", node, of: volume, value };
}

export const gone: HistoryEvent = { ...image(undefined), bytes: undefined, exists: false } as HistoryEvent;
export const created = [call(1, "create", { bytes }), image(undefined), ok(1)];
export const published = [
  ...created,
  call(2, "publish", { node: "n1" }),
  image(undefined, first),
  ok(2, { nqn: first }),
];
export const staged = [
  ...published,
  call(3, "stage", { node: "n1" }),
  kernel("n1", [first], false),
  formats("n1", "ext4"),
  image("ext4", first),
  kernel("n1", [first]),
  ok(3),
] as const;
export const written = [
  ...staged,
  { kind: "write", node: "n1", of: volume, value: "w1", acknowledged: true },
  image("w1", first),
] as const;
export const unpublished = [
  ...written,
  call(4, "unstage", { node: "n1" }),
  kernel("n1", []),
  ok(4),
  call(5, "unpublish", { node: "n1" }),
  image("w1"),
  ok(5),
];

export const deleted = [...unpublished, call(6, "delete"), gone, ok(6)];
export const snapshotted = [
  ...unpublished,
  call(6, "snapshot", { of: "snap-1", source: volume }),
  image("w1", undefined, { of: "snap-1" }),
  ok(6),
];

export const attached: HistoryEvent = { kind: "attachment", of: volume, node: "n2", nqn: second };
export const turnedOffAtRest = [{ kind: "resting" }, image(undefined), {
  kind: "rested",
  wanted: undefined,
}] as const;
/** The router has lost that the volume was published. */
export const forgotten = [
  ...published,
  { kind: "attachment", of: volume, node: "n1", nqn: first },
  { kind: "rebooted", forgets: true },
  image(undefined),
  call(3, "publish", { node: "n2" }),
  image(undefined, reissued),
] as const;

export const calm = { commands: 1, changes: 1, remembers: true, waited: false, byHand: false };
export const leaves = [call(3, "unpublish", { node: "n1" }), image(undefined)] as const;
/** A person turns an export on that an attachment waits for. */
export const turnedOn = [
  ...published,
  ...leaves,
  ok(3),
  call(4, "publish", { node: "n2" }),
  ok(4, { error: "unavailable" }),
  { kind: "edited", of: volume, exported: first, wanted: true },
  image(undefined, first),
] as const;
