import { usableBytes } from "../encryption.ts";
import type { Intent, StagingState } from "./state.ts";

/** The first difference between how a volume is staged and how it is wanted; undefined when it satisfies the request. */
export function stagingDifference(staged: Intent, asked: Intent): string | undefined {
  if (staged.kind !== asked.kind) return `staged=${staged.kind} asked=${asked.kind}`;
  if (staged.readOnly !== asked.readOnly) {
    return `staged readonly=${staged.readOnly} asked readonly=${asked.readOnly}`;
  }
  if (staged.stagingPath !== asked.stagingPath) return `staged at=${staged.stagingPath}`;
  const [isEncrypted, wantsEncrypted] = [staged.map === "crypt", asked.map === "crypt"];
  if (isEncrypted !== wantsEncrypted) {
    return `staged encrypted=${isEncrypted} asked encrypted=${wantsEncrypted}`;
  }
  const flags = (list: readonly string[] = []) => list.toSorted().join(",");
  const [digests, askedDigests] = [flags(staged.connection.digests), flags(asked.connection.digests)];
  if (digests !== askedDigests) {
    return `staged digests=${digests || "none"} asked digests=${askedDigests || "none"}`;
  }
  if (flags(staged.mountFlags) !== flags(asked.mountFlags)) return "the mount flags differ";
  return undefined;
}

/** The least size of the device through which the volume is used. */
export function usedBytes({ namespaceBytes, map }: Intent): bigint {
  return usableBytes(namespaceBytes, map === "crypt");
}

/** Whether every use of the device on this node is read-only: a read-only bind of a device does not stop writes. */
export function wantsReadOnlyDevice(
  { intent: { kind, readOnly }, here: { published } }: StagingState,
): boolean {
  if (readOnly) return true;
  return kind === "block" && published.length > 0 && published.every((target) => target.readOnly);
}
