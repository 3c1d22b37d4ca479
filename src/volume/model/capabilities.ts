import { VolumeError } from "../errors.ts";

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

/** A capability as a request names it, before it is known whether this driver supports it. */
export interface RequestedCapability {
  readonly access: "block" | "mount" | undefined;
  /** Empty when the request leaves it to the driver. */
  readonly fsType: string;
  /** The specification's name of the mode, such as SINGLE_NODE_WRITER. */
  readonly mode: string;
}

const modesByName: Readonly<Record<string, AccessMode>> = {
  SINGLE_NODE_WRITER: "single-node-writer",
  SINGLE_NODE_READER_ONLY: "single-node-reader-only",
  SINGLE_NODE_SINGLE_WRITER: "single-node-single-writer",
  SINGLE_NODE_MULTI_WRITER: "single-node-multi-writer",
  MULTI_NODE_READER_ONLY: "multi-node-reader-only",
  MULTI_NODE_MULTI_WRITER: "multi-node-multi-writer",
};

/** The file system of a volume whose request names none. */
export const defaultFilesystem: FilesystemType = "ext4";

/**
 * Parses one requested capability.
 *
 * @throws {VolumeError} invalid when it is incomplete or not supported; the message says which part
 */
export function parseCapability(requested: RequestedCapability): Capability {
  if (requested.access === undefined) {
    throw new VolumeError(
      "invalid",
      "Cannot use the volume capability because it names neither block nor mount access",
    );
  }
  const mode = parseAccessMode(requested.mode);
  if (requested.access === "block") return { access: "block", mode };
  if (mode === "multi-node-multi-writer") {
    throw new VolumeError(
      "invalid",
      "Cannot use the volume capability because two nodes would write to one file system: mode=MULTI_NODE_MULTI_WRITER; " +
        "it is supported for block volumes only (volumeMode: Block)",
    );
  }
  return { access: "mount", filesystem: parseFilesystem(requested.fsType), mode };
}

/**
 * Parses the specification's name of an access mode.
 *
 * @throws {VolumeError} invalid when it is not supported
 */
export function parseAccessMode(name: string): AccessMode {
  const mode = Object.hasOwn(modesByName, name) ? modesByName[name] : undefined;
  if (mode !== undefined) return mode;
  throw new VolumeError(
    "invalid",
    `Cannot use the volume capability because its access mode is not supported: mode=${name}; ` +
      `supported are ${Object.keys(modesByName).join(", ")}`,
  );
}

function parseFilesystem(fsType: string): FilesystemType {
  if (fsType === "") return defaultFilesystem;
  if (fsType === "ext4" || fsType === "xfs") return fsType;
  throw new VolumeError(
    "invalid",
    `Cannot use the volume capability because its file system is not supported: fsType=${
      JSON.stringify(fsType.slice(0, 32))
    }; ` +
      "supported are ext4 and xfs",
  );
}

/** The kind and the access modes that a new volume is made for. */
export interface VolumeCapabilities {
  readonly kind: VolumeKind;
  readonly modes: readonly AccessMode[];
  /** Whether nodes encrypt it. */
  readonly encrypted?: boolean;
}

/** Marks an encrypted volume, among the letters of its modes. */
const encryptedLetter = "e";

/**
 * Parses the capabilities of one volume. All have to be of one kind, so that it is always clear whether the volume may
 * be formatted.
 *
 * @throws {VolumeError} invalid when there is none, one is not supported, or they differ in kind
 */
export function parseCapabilities(requested: readonly RequestedCapability[]): VolumeCapabilities {
  const capabilities = requested.map(parseCapability);
  const first = capabilities[0];
  if (first === undefined) {
    throw new VolumeError("invalid", "Cannot use the volume capabilities because there are none");
  }
  const kind: VolumeKind = first.access === "block"
    ? { access: "block" }
    : { access: "mount", filesystem: first.filesystem };
  if (capabilities.some((capability) => !sameKind(capability, kind))) {
    throw new VolumeError(
      "invalid",
      "Cannot use the volume capabilities because they ask for different kinds of volume",
    );
  }
  return { kind, modes: [...new Set(capabilities.map((capability) => capability.mode))] };
}

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
