/**
 * A condition that the router itself checks in the statement that writes: nothing is written unless all of them hold. Of each
 * kind the adapter has one builder, and the store in memory one evaluator.
 */
export type Premise =
  /** Of the disk in the slot: its whole comment, its image path, or a part of that. */
  | { readonly is: "comment" | "path" | "path-holds"; readonly text: string }
  | { readonly is: "size"; readonly bytes: bigint }
  | { readonly is: "exported" | "not-exported" | "not-mounted" }
  /** No disk is in the slot. */
  | { readonly is: "slot-free" }
  /** The image path of no disk, of one disk alone, holds the text; the path of no file does. */
  | { readonly is: "unused" | "alone" | "no-files"; readonly text: string }
  /** A file is at the path, of that size where one is named. */
  | { readonly is: "image-there"; readonly path: string; readonly bytes?: bigint }
  /** On Btrfs the file system that is mounted there has the label. */
  | { readonly is: "pool-mounted"; readonly mountPoint: string; readonly label: string | undefined }
  /** The bytes of no volume say that it is a file system of that label. */
  | { readonly is: "label-free"; readonly label: string }
  /** Not the router's: the write goes only on a connection to a router that is known to be up for so long, in milliseconds. */
  | { readonly is: "up-for"; readonly ms: number };
