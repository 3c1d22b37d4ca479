import { VolumeError } from "../../errors.ts";
import type { AccessMode } from "../capabilities.ts";
import { parseAccessMode, type RequestedCapability } from "../requested_capabilities.ts";

/**
 * Parses a capability that a request names for a directory: a file system that any number of nodes may write to.
 *
 * @throws {VolumeError} invalid for a raw block volume, a file system of another name than nfs, or an unknown mode
 */
export function parseDirectoryCapability({ access, fsType, mode }: RequestedCapability): AccessMode {
  if (access === undefined) {
    throw new VolumeError(
      "invalid",
      "Cannot use the volume capability because it names neither block nor mount access",
    );
  }
  if (access === "block") {
    throw new VolumeError(
      "invalid",
      "Cannot use the volume capability because a shared directory is no raw block volume; use volumeMode: Filesystem",
    );
  }
  if (fsType !== "" && fsType !== "nfs" && fsType !== "nfs4") {
    throw new VolumeError(
      "invalid",
      "Cannot use the volume capability because a shared directory has no file system of its own: " +
        `fsType=${JSON.stringify(fsType.slice(0, 32))}; leave it out`,
    );
  }
  return parseAccessMode(mode);
}
