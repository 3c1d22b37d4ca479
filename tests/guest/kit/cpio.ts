/** One entry of an archive; `path` has no leading slash, and its folder comes before it. */
export type CpioEntry =
  | { readonly kind: "folder"; readonly path: string; readonly mode?: number }
  | { readonly kind: "file"; readonly path: string; readonly mode: number; readonly bytes: Uint8Array }
  | { readonly kind: "link"; readonly path: string; readonly target: string };

const types = { folder: 0o040000, file: 0o100000, link: 0o120000 } as const;
const encoder = new TextEncoder();

/** An archive in the kernel's format for its first file system ("newc"); everything belongs to root. */
export function cpioArchive(entries: readonly CpioEntry[]): Uint8Array[] {
  return [
    ...entries.flatMap((entry, index) => record(index + 1, entry.path, modeOf(entry), contentOf(entry))),
    ...record(0, "TRAILER!!!", 0, new Uint8Array()),
  ];
}

function modeOf(entry: CpioEntry): number {
  return types[entry.kind] | (entry.kind === "link" ? 0o777 : entry.mode ?? 0o755);
}

function contentOf(entry: CpioEntry): Uint8Array {
  if (entry.kind === "file") return entry.bytes;
  return entry.kind === "link" ? encoder.encode(entry.target) : new Uint8Array();
}

function record(inode: number, path: string, mode: number, content: Uint8Array): Uint8Array[] {
  const name = encoder.encode(`${path}\0`);
  const folders = (mode & 0o170000) === types.folder;
  const fields = [inode, mode, 0, 0, folders ? 2 : 1, 0, content.length, 0, 0, 0, 0, name.length, 0];
  const header = encoder.encode(
    "070701" + fields.map((field) => field.toString(16).padStart(8, "0")).join(""),
  );
  return [header, name, padding(header.length + name.length), content, padding(content.length)];
}

/** Names and contents end at multiples of four bytes. */
function padding(length: number): Uint8Array {
  return new Uint8Array(-length & 3);
}
