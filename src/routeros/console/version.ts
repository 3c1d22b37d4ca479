import type { Row } from "./json.ts";

/** What the driver knows about the router it talks to. */
export interface RouterInfo {
  /** As the router spells it, such as `7.24 (stable)`. */
  readonly version: string;
  /** Such as `RDS2216`; "" when the router does not say. */
  readonly board: string;
  /** Whether an export can have an NQN of its own, which fencing rests on: RouterOS 7.21 and newer. */
  readonly supportsNqn: boolean;
  /** Whether it knows Btrfs subvolumes: RouterOS 7.18 and newer. */
  readonly supportsSubvolumes: boolean;
  /** Whether the driver can work with it at all: RouterOS 7.17 and newer. */
  readonly supported: boolean;
}

/** What of a router decides how its answers are read. */
export type RouterWords = Pick<RouterInfo, "supportsNqn" | "supportsSubvolumes">;

/** What is assumed of a router that was not asked yet. */
export const unknownRouter: RouterWords = { supportsNqn: true, supportsSubvolumes: false };

/**
 * Reads what `/system resource print` says about the router itself.
 *
 * @throws {VolumeError} unavailable when it names no version
 */
export function parseRouterInfo(resource: Row): RouterInfo {
  const version = resource.text("version");
  return {
    version,
    board: resource.text("board-name", ""),
    supportsNqn: isAtLeast(version, 7, 21),
    supportsSubvolumes: isAtLeast(version, 7, 18),
    supported: isAtLeast(version, 7, 17),
  };
}

/** Whether a RouterOS version is `major.minor` or newer; one that cannot be read is not. */
export function isAtLeast(version: string, major: number, minor: number): boolean {
  const match = /^(\d+)\.(\d+)/.exec(version);
  if (match === null) return false;
  const [ownMajor, ownMinor] = [Number(match[1]), Number(match[2])];
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}
