import { parseEpoch } from "./epoch.ts";
import { decodeHandle, isBackendName, isVolumeId } from "./ids.ts";

/** What an NQN of this driver's exports says. */
export interface ExportName {
  /** As clients know it: `<backend>/<volume>` for one of several routers. */
  readonly volumeId: string;
  /** "" for an export of the legacy Go driver, which has none. */
  readonly epoch: string;
}

/**
 * Reads the NQN of an export, `<prefix>:<volume>[:<epoch>]` or `<prefix>:<backend>:<volume>:<epoch>`; undefined when it is
 * none of this driver's.
 *
 * @param prefix what the NQNs of this driver's exports begin with, without the colon after it
 */
export function parseExportNqn(nqn: string, prefix: string): ExportName | undefined {
  if (!nqn.startsWith(`${prefix}:`) || nqn.length > 223) return undefined;
  const parts = nqn.slice(prefix.length + 1).split(":");
  const [backend = "", id = "", ended = ""] = parts;
  if (parts.length === 3 && isBackendName(backend) && isVolumeId(id) && parseEpoch(ended) !== undefined) {
    return { volumeId: decodeHandle(`${backend}:${id}`), epoch: ended };
  }
  const [volumeId, epoch, ...more] = parts;
  if (volumeId === undefined || !isVolumeId(volumeId) || more.length > 0) return undefined;
  if (epoch !== undefined && !/^[A-Za-z0-9-]{1,32}$/.test(epoch)) return undefined;
  return { volumeId, epoch: epoch ?? "" };
}
