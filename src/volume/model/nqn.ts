import { parseEpoch } from "./epoch.ts";
import { isVolumeId } from "./ids/ids.ts";
import { decodeHandle, isBackendName } from "./ids/handles.ts";

/** The parts of the NQN of an export of this driver. */
export interface ExportName {
  /** The client's id: `<backend>/<volume>` for one of several routers. */
  readonly volumeId: string;
  /** "" for an export of the legacy Go driver, which has no epoch. */
  readonly epoch: string;
}

/**
 * Parses the NQN of an export, `<prefix>:<volume>[:<epoch>]` or `<prefix>:<backend>:<volume>:<epoch>`; undefined when
 * it does not belong to this driver.
 *
 * @param prefix the prefix of the NQNs of this driver's exports, without the colon after it
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
