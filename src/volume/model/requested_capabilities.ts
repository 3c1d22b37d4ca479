import { VolumeError } from "../errors.ts";
import {
  type AccessMode,
  type Capability,
  type FilesystemType,
  sameKind,
  type VolumeCapabilities,
  type VolumeKind,
} from "./capabilities.ts";

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
    "Cannot use the volume capability because its file system is not supported: " +
      `fsType=${JSON.stringify(fsType.slice(0, 32))}; supported are ext4 and xfs`,
  );
}

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
