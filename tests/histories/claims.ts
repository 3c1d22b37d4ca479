import type { HistoryEvent, Verb } from "./events.ts";

/** A call, the state of an image, and that of a volume in a kernel, as a history records them. */
export type Call = Extract<HistoryEvent, { kind: "call" }>;
export type Image = Omit<Extract<HistoryEvent, { kind: "image" }>, "kind">;
export type Kernel = Omit<Extract<HistoryEvent, { kind: "kernel" }>, "kind">;

/** What tells whether a claim is true now. */
interface Facts {
  readonly image: Image | undefined;
  /** The volume in the kernel of the call's node. */
  readonly kernel: Kernel | undefined;
  /** The node that was given the NQN under which the volume is exported. */
  readonly owner: string | undefined;
  readonly isShared: boolean;
}

/** Whether it is so now what an OK to the call would say. */
export function isSo({ verb, node, bytes }: Call, { image, kernel, owner, isShared }: Facts): boolean {
  const exported = image?.exported;
  const claims: Record<Verb, () => boolean> = {
    create: () => (image?.bytes ?? -1n) >= bytes! && !image?.elsewhere,
    expand: () => (image?.bytes ?? -1n) >= bytes! && !image?.elsewhere,
    snapshot: () => image?.bytes !== undefined,
    delete: () => image?.exists !== true,
    deleteSnapshot: () => image?.exists !== true,
    list: () => true,
    import: () => image?.exists === true,
    adopt: () => image?.exists === true,
    publish: () => exported !== undefined && owner === node,
    // The other node of a shared volume goes on under the same NQN.
    unpublish: () => exported === undefined || owner !== node || isShared,
    stage: () => kernel?.staged === true && kernel.published !== false && kernel.connected.length > 0,
    unstage: () =>
      kernel === undefined || !kernel.staged && kernel.published !== true && kernel.connected.length === 0,
    grow: () => (kernel?.bytes ?? -1n) >= bytes!,
  };
  return claims[verb]();
}
