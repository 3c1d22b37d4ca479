import { type AccessMode, formatCapabilities, type VolumeKind } from "../model/capabilities.ts";
import { defaultFilesystem } from "../model/requested_capabilities.ts";
import type { ClusterVolume, NodeAttachment } from "../ports/cluster_view.ts";
import { type Epoch, isLegacyEpoch, legacyEpoch } from "../model/epoch.ts";
import { VolumeError } from "../errors.ts";
import { assertNodeId, nameDigest } from "../model/ids/ids.ts";
import { judgeOwnership } from "./ownership.ts";
import type { Random } from "../ports/system.ts";
import type { StoredFile, StoredVolume } from "../model/inventory.ts";
import { maxMigratingHolders } from "./publish.ts";
import { type Holder, nodeIdsOf, type OwnedVolume, type RecordComment } from "../model/record.ts";

/** What is known of a volume of the legacy Go driver, from the cluster's objects or from a person. */
export interface LegacyClaim {
  readonly kind: VolumeKind;
  readonly mode: AccessMode;
  readonly holders: readonly Holder[];
  /**
   * Counter of the last epoch that this driver gave a node, of which the router has no record any more; 0 when it gave
   * none. If there was one, the only nodes that may still use the legacy driver's NQN are nodes that were shut out
   * since.
   */
  readonly forgotten: number;
}

/**
 * The CSI modes that Kubernetes passes to a driver that distinguishes single-node modes. A volume of two modes at once
 * has no CSI mode.
 */
export const modesOfVolumes: Readonly<Record<string, AccessMode>> = {
  ReadWriteOnce: "single-node-multi-writer",
  ReadWriteOncePod: "single-node-single-writer",
  ReadOnlyMany: "multi-node-reader-only",
  ReadWriteMany: "multi-node-multi-writer",
};

/**
 * Concludes from the cluster's objects how a volume of the legacy driver is used. A node whose attachment is not
 * complete is no holder. When a node was given a later epoch, there are no holders: the router was restored to an
 * earlier state.
 *
 * @throws {VolumeError} precondition when the objects leave a doubt
 */
export function claimOf(
  volume: ClusterVolume,
  attachments: readonly NodeAttachment[],
  nowMs: number,
): LegacyClaim {
  const kind = kindOf(volume);
  const mode = modeOf(volume, kind);
  const own = attachments.filter((one) => one.volumeId === volume.volumeId);
  const forgotten = Math.max(0, ...own.map(({ epochCounter }) => epochCounter));
  const attached = forgotten > 0 ? [] : own.filter((one) => one.attached);
  const byNode = Map.groupBy(attached, ({ nodeId }) => nodeId);
  const holders = [...byNode].map(([nodeId, [first]]): Holder => ({
    nodeId,
    sinceSeconds: first!.sinceSeconds ?? Math.floor(nowMs / 1000),
    readOnly: volume.readOnly,
    mode,
  }));
  return assertClaim(volume.volumeId, { kind, mode, holders, forgotten });
}

/**
 * Checks that so many nodes may hold a volume at once in that mode.
 *
 * @throws {VolumeError} precondition when they may not; invalid when a node's id has another form than this driver's
 */
export function assertClaim(id: string, claim: LegacyClaim): LegacyClaim {
  const { mode, kind, holders } = claim;
  for (const { nodeId } of holders) assertNodeId(nodeId);
  const most = mode === "multi-node-reader-only"
    ? Infinity
    : mode === "multi-node-multi-writer"
    ? maxMigratingHolders
    : 1;
  const nodes = nodeIdsOf(holders).join(", ");
  if (holders.length > most) {
    throw doubt(id, `more nodes have it than may: nodes=${nodes} mode=${mode}`);
  }
  if (mode === "multi-node-multi-writer" && kind.access === "mount") {
    throw doubt(id, "several nodes would corrupt one file system: mode=ReadWriteMany");
  }
  return claim;
}

/** What was read besides a disk that is to be migrated. */
export interface LegacyScene {
  readonly basePaths: readonly string[];
  readonly nqnPrefix: string;
  readonly cluster: string;
  /** Other disks whose image path contains the id. */
  readonly sharers: readonly StoredVolume[];
  /** Files whose path contains the id. */
  readonly files: readonly StoredFile[];
}

/**
 * Refuses a disk unless it is exactly as the legacy driver leaves it.
 *
 * @throws {VolumeError} precondition saying how it differs
 */
export function assertLeftByLegacyDriver(stored: StoredVolume, scene: LegacyScene): void {
  const { id, imagePath, exported, exportNqn, sizeBytes } = stored;
  if (judgeOwnership(stored, scene.cluster).state !== "earlier-driver") {
    throw doubt(id, "it is none of the legacy driver's");
  }
  if (!scene.basePaths.some((base) => imagePath === `${base}/${id}.img`)) {
    throw doubt(id, `its image is in no folder of --base-path: path=${imagePath}`);
  }
  const nqn = `${scene.nqnPrefix}:${id}`;
  if (exportNqn !== nqn && (exported || exportNqn !== "")) {
    throw doubt(id, `its export has another name: nqn=${exportNqn} expected=${nqn} (--nqn-prefix)`);
  }
  const sharer = scene.sharers.find((other) => other.imagePath === imagePath);
  if (sharer !== undefined) throw doubt(id, `another disk uses its image: disk=${sharer.id}`);
  const image = scene.files.find((file) => file.path === imagePath && !file.directory);
  if (image === undefined) throw doubt(id, `its image does not exist: path=${imagePath}`);
  if (image.sizeBytes < sizeBytes) {
    throw doubt(id, `its image is smaller than the disk: file=${image.sizeBytes} disk=${sizeBytes}`);
  }
}

/**
 * The comment that makes a volume of the legacy driver one of this cluster. Existing text stays before the record. It
 * is never blank: it is unknown what the legacy driver has done to the volume.
 */
export function migratedComment(
  stored: StoredVolume,
  claim: LegacyClaim,
  cluster: string,
  random: Random,
): RecordComment {
  const { kind, mode, holders, forgotten } = claim;
  const record = {
    cluster,
    name: nameDigest(stored.id),
    capabilities: formatCapabilities({ kind, modes: [mode] }),
    parameters: "00000000",
    epoch: epochToWrite(stored, forgotten),
    blankEpoch: 0,
    withdrawnAtSeconds: undefined,
    source: undefined,
    // A unique record: if the router runs a command of an earlier migration late, it finds no match.
    growths: 1 + random.bytes(2).reduce((sum, byte) => sum * 256 + byte, 0) % 46_655,
    holders,
  };
  return { record, before: stored.comment === "" ? "" : `${stored.comment} `, after: "" };
}

/**
 * The epoch after a forgotten one must not look older than that one. While the export is still on, it must: whoever goes on, if
 * this ends here, withdraws the export because of that.
 *
 * @param forgotten the counter of the latest epoch that the cluster knows
 */
export function epochToWrite({ exported }: StoredVolume, forgotten: number): Epoch {
  return exported ? legacyEpoch : { ...legacyEpoch, counter: forgotten };
}

/**
 * Whether the volume was migrated without known holders, and is still exported as it was then. For a record of a newer
 * version that is unknown.
 */
export function awaitsHolders({ stored, record }: OwnedVolume): boolean {
  return record.newerFields === undefined && isLegacyEpoch(record.epoch) && record.holders.length === 0 &&
    record.withdrawnAtSeconds === undefined && stored.exported && stored.exportNqn.endsWith(`:${stored.id}`);
}

function kindOf({ volumeId, access, fsType, attributes }: ClusterVolume): VolumeKind {
  if (access === "block") return { access };
  const filesystem = fsType || attributes["fsType"] || defaultFilesystem;
  if (filesystem === "ext4" || filesystem === "xfs") return { access, filesystem };
  throw doubt(volumeId, `this driver does not know its file system: fsType=${filesystem}`);
}

function modeOf({ volumeId, accessModes }: ClusterVolume, kind: VolumeKind): AccessMode {
  const modes = new Set(accessModes);
  // The same choice as the attacher's.
  if (modes.has("ReadWriteMany") && kind.access === "block") return "multi-node-multi-writer";
  const [only, ...others] = modes;
  const mode = only !== undefined && Object.hasOwn(modesOfVolumes, only) ? modesOfVolumes[only] : undefined;
  if (mode !== undefined && others.length === 0) return mode;
  throw doubt(volumeId, `its access modes are not one of CSI's: modes=${accessModes.join(", ")}`);
}

function doubt(id: string, reason: string): VolumeError {
  return new VolumeError(
    "precondition",
    `Cannot take the volume over from the legacy driver because ${reason}: volume=${id}; check it by hand`,
  );
}
