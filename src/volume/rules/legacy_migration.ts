import {
  type AccessMode,
  defaultFilesystem,
  formatCapabilities,
  type VolumeKind,
} from "../model/capabilities.ts";
import type { ClusterVolume, NodeAttachment } from "../ports/cluster_view.ts";
import { isLegacyEpoch, legacyEpoch } from "../model/epoch.ts";
import { VolumeError } from "../errors.ts";
import { assertNodeId, nameDigest } from "../model/ids.ts";
import { judgeOwnership } from "./ownership.ts";
import type { Random } from "../ports/system.ts";
import type { StoredFile, StoredVolume } from "../model/inventory.ts";
import { maxMigratingHolders } from "./publish.ts";
import { type Holder, nodeIdsOf, type OwnedVolume, type RecordComment } from "../model/record.ts";

/** What a volume of the legacy Go driver is, and who has it: from the cluster's objects, or from a person. */
export interface LegacyClaim {
  readonly kind: VolumeKind;
  readonly mode: AccessMode;
  readonly holders: readonly Holder[];
  /**
   * Counter of the last epoch that this driver gave a node, of which the router has no record any more; 0 when it gave none.
   * Nobody has the volume then under the NQN that the legacy driver gave it, other than who was shut out since.
   */
  readonly forgotten: number;
}

/** How Kubernetes' modes reach a driver that tells single-node modes apart; two of them at once are no mode of CSI's. */
export const modesOfVolumes: Readonly<Record<string, AccessMode>> = {
  ReadWriteOnce: "single-node-multi-writer",
  ReadWriteOncePod: "single-node-single-writer",
  ReadOnlyMany: "multi-node-reader-only",
  ReadWriteMany: "multi-node-multi-writer",
};

/**
 * What the cluster's objects say of a volume of the legacy driver. Whoever's attachment is not done has not got it; nor has
 * anybody when a node was answered a later epoch: the router was restored to what it was before it.
 *
 * @throws {VolumeError} precondition when they leave a doubt
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
 * Checks that so many nodes may have a volume at once in that way.
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

/** What is seen of a disk that is to be taken over, beside the disk. */
export interface LegacyScene {
  readonly basePaths: readonly string[];
  readonly nqnPrefix: string;
  readonly cluster: string;
  /** Other disks whose image path holds the id. */
  readonly sharers: readonly StoredVolume[];
  /** Files whose path holds the id. */
  readonly files: readonly StoredFile[];
}

/**
 * Refuses a disk that is not beyond doubt as the legacy driver has left it.
 *
 * @throws {VolumeError} precondition saying in what it differs
 */
export function assertLeftByLegacyDriver(stored: StoredVolume, scene: LegacyScene): void {
  const { id, imagePath, exported, exportNqn, sizeBytes } = stored;
  if (judgeOwnership(stored, scene.cluster).state !== "earlier-driver") {
    throw doubt(id, "it is none of the legacy driver's");
  }
  if (!scene.basePaths.some((base) => imagePath === `${base}/${id}.img`)) {
    throw doubt(id, `its image lies in no folder of --base-path: path=${imagePath}`);
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
 * The comment that makes a volume of the legacy driver one of this cluster's. What somebody wrote stays before the record.
 * It is never blank: nobody knows what the legacy driver has done to it.
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
    // What follows a forgotten epoch must not look older than it.
    epoch: { ...legacyEpoch, counter: forgotten },
    blankEpoch: 0,
    withdrawnAtSeconds: undefined,
    source: undefined,
    // A record like no other: a command of an earlier takeover that the router runs late finds nothing.
    growths: 1 + random.bytes(2).reduce((sum, byte) => sum * 256 + byte, 0) % 46_655,
    holders,
  };
  return { record, before: stored.comment === "" ? "" : `${stored.comment} `, after: "" };
}

/** The comment that somebody had written before the volume was taken over. */
export function commentWithoutRecord({ before, after }: RecordComment): string {
  return after === "" ? before.replace(/ $/, "") : before + after;
}

/**
 * Whether nobody was known to have a volume when it was taken over, and it is still exported as it was then. Of one whose
 * record a newer version wrote that is not known.
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
  // As the attacher chooses.
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
