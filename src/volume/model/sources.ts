import { isSnapshotId, isVolumeId } from "./ids.ts";

/** What a volume is made from. */
export interface SourceRef {
  readonly kind: "volume" | "snapshot";
  readonly id: string;
}

/** As it stands in the record: `v:` or `s:` and the id. */
export function formatSource({ kind, id }: SourceRef): string {
  return `${kind === "volume" ? "v" : "s"}:${id}`;
}

/** Reads what {@linkcode formatSource} wrote; undefined when it is anything else. */
export function parseSource(text: string | undefined): SourceRef | undefined {
  const id = text?.slice(2) ?? "";
  if (text?.startsWith("v:") && isVolumeId(id)) return { kind: "volume", id };
  if (text?.startsWith("s:") && isSnapshotId(id)) return { kind: "snapshot", id };
  return undefined;
}
