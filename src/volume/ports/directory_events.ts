import type { EventListener } from "./event_listener.ts";

/** An event in a controller of directories. */
export type DirectoryEvent =
  /** The share was read; its free space is 0 while nothing is mounted there. */
  | { readonly kind: "share-read"; readonly isUsable: boolean; readonly freeBytes: bigint }
  /** So many deleted directories wait for their removal. */
  | { readonly kind: "removals-pending"; readonly count: number }
  /** A part of a deleted directory was removed, and so many files and directories are left in it. */
  | {
    readonly kind: "removal-progress";
    readonly path: string;
    readonly part: string;
    readonly left: number;
    readonly refusal?: string;
  };

/** Receives the events of a controller of directories. */
export type DirectoryEvents = EventListener<DirectoryEvent>;
