/** File systems this driver makes. */
export type FilesystemType = "ext4" | "xfs";

/** The access modes of the CSI specification that this driver supports. */
export type AccessMode =
  | "single-node-writer"
  | "single-node-reader-only"
  | "single-node-single-writer"
  | "single-node-multi-writer"
  | "multi-node-reader-only"
  | "multi-node-multi-writer";

/** The letter of each mode in the record. Never reassign one: records on routers use them. */
export const modeLetters: Readonly<Record<AccessMode, string>> = {
  "single-node-writer": "w",
  "single-node-reader-only": "r",
  "single-node-single-writer": "o",
  "single-node-multi-writer": "m",
  "multi-node-reader-only": "n",
  "multi-node-multi-writer": "x",
};

/** Whether a volume is used as a raw block device or through a file system. */
export type VolumeKind =
  | { readonly access: "block" }
  | { readonly access: "mount"; readonly filesystem: FilesystemType };

/** One way of using a volume. */
export type Capability = VolumeKind & { readonly mode: AccessMode };

/** The kind and the access modes that a new volume is made for. */
export interface VolumeCapabilities {
  readonly kind: VolumeKind;
  readonly modes: readonly AccessMode[];
  /** Whether nodes encrypt it. */
  readonly encrypted?: boolean;
}

/** Marks an encrypted volume, among the letters of its modes. */
const encryptedLetter = "e";

/** Whether both are block, or the same file system. */
export function sameKind(a: VolumeKind, b: VolumeKind): boolean {
  return a.access === "block" ? b.access === "block" : b.access === "mount" && a.filesystem === b.filesystem;
}

/** Formats capabilities as the record has them: `block/x`, `ext4/wo`, and encrypted `ext4/ew`. */
export function formatCapabilities({ kind, modes, encrypted = false }: VolumeCapabilities): string {
  const letters = modes.map((mode) => modeLetters[mode]);
  if (encrypted) letters.push(encryptedLetter);
  return `${kindName(kind)}/${letters.toSorted().join("")}`;
}

/** Parses capabilities in the record's form; undefined when the text has another form. */
export function parseRecordedCapabilities(text: string): VolumeCapabilities | undefined {
  const match = /^(block|ext4|xfs)\/([a-z]+)$/.exec(text);
  if (match === null) return undefined;
  const encrypted = match[2]!.includes(encryptedLetter);
  const letters = [...match[2]!].filter((letter) => letter !== encryptedLetter);
  const modes = letters.map((letter) => allModes.find((mode) => modeLetters[mode] === letter));
  if (modes.includes(undefined)) return undefined;
  const name = match[1] as "block" | FilesystemType;
  const kind: VolumeKind = name === "block" ? { access: "block" } : { access: "mount", filesystem: name };
  return { kind, modes: modes as AccessMode[], ...(encrypted ? { encrypted } : {}) };
}

const allModes = Object.keys(modeLetters) as AccessMode[];

/** `block`, or the file system's name. */
export function kindName(kind: VolumeKind): "block" | FilesystemType {
  return kind.access === "block" ? "block" : kind.filesystem;
}

/** Whether a mode promises that nothing is written. */
export function isReadOnlyMode(mode: AccessMode): boolean {
  return mode === "single-node-reader-only" || mode === "multi-node-reader-only";
}
