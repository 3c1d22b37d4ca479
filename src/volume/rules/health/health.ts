import type { HealthProblem, HealthStatus, VolumeHealth } from "../../model/health/health.ts";
import type { HardwareFinding, HardwareReason } from "../../model/health/hardware.ts";
import { isVolumeId, poolOf } from "../../model/ids/ids.ts";
import { usesOwnImage } from "../../model/sources.ts";
import { nodeIdsOf, type OwnedVolume } from "../../model/record.ts";
import { isNamedAsOwn, judgeOwnership } from "../ownership.ts";
import type { FileView, Inventory, Pool, StoredFile, StoredVolume } from "../../model/inventory.ts";
import { whyPoolUnreadable } from "../absence.ts";
import { describeUnsoundPool } from "../array_state.ts";
import { isExportedAsRecorded } from "../publish.ts";

/** A boot of the router after which the kernels of nodes drop its devices. */
export interface RouterBoot {
  /** The time of the boot (`Clock.now()`). */
  readonly atMs: number;
  /** Whether every node that stages the volume has a device layer below it, which outlasts the boot. */
  readonly isLayered: (volumeId: string) => boolean;
}

/** Indexes by the path of an image: thousands of disks are judged at once. */
interface Images extends Pick<Inventory, "pools" | "unreadablePools"> {
  readonly files: ReadonlyMap<string, StoredFile>;
  /** The disk that uses an image, and the next one that does. */
  readonly users: ReadonlyMap<string, string>;
  readonly secondUsers: ReadonlyMap<string, string>;
}

/**
 * Judges every volume of a cluster that a call could name: those with a disk, and those of which only the image is
 * left. Ordered by id.
 *
 * @param view all disks, the mounted pools, and the files whose path contains the cluster's hash
 * @param boot the router's last one, if it gives its exports new identities at a boot
 */
export function judgeHealth(
  view: Inventory & FileView,
  cluster: string,
  basePaths: readonly string[],
  boot?: RouterBoot,
): VolumeHealth[] {
  const images = imagesOf(view);
  const disks = view.volumes.flatMap((stored) => {
    const problems = diskProblems(stored, images, cluster, basePaths, boot);
    return problems === undefined ? [] : [{ id: stored.id, problems }];
  });
  const known = new Set(view.volumes.map((stored) => stored.id));
  const lost = Map.groupBy(lostDisks(view.files, known, cluster, basePaths), ({ id }) => id);
  const found = [...lost].map(([id, images]) => ({
    id,
    problems: images.flatMap(({ problems }) => problems),
  }));
  return [...disks, ...found].filter(({ id }) => isVolumeId(id)).toSorted((a, b) => a.id < b.id ? -1 : 1);
}

function imagesOf({ volumes, files, pools, unreadablePools }: Inventory & FileView): Images {
  const users = new Map<string, string>();
  const secondUsers = new Map<string, string>();
  for (const { id, imagePath } of volumes) {
    if (!users.has(imagePath)) users.set(imagePath, id);
    else if (!secondUsers.has(imagePath)) secondUsers.set(imagePath, id);
  }
  const images = new Map(files.flatMap((file) => file.directory ? [] : [[file.path, file]]));
  return { pools, ...unreadablePools && { unreadablePools }, files: images, users, secondUsers };
}

/** The problems of a disk's volume; undefined when it is not this cluster's. */
function diskProblems(
  stored: StoredVolume,
  images: Images,
  cluster: string,
  basePaths: readonly string[],
  boot: RouterBoot | undefined,
): HealthProblem[] | undefined {
  const ownership = judgeOwnership(stored, cluster);
  if (ownership.state === "unreadable") {
    // Its nodes may well go on with it; no call about it does.
    return isNamedAsOwn(stored, cluster, basePaths)
      ? [problem("DEGRADED", "DiskUnreadable", ownership.reason)]
      : undefined;
  }
  if (ownership.state === "damaged" || ownership.state === "no-record") {
    // A disk with this cluster's name and no readable record: the record was lost or edited.
    if (!isNamedAsOwn(stored, cluster, basePaths)) return undefined;
    const reason = ownership.state === "damaged" ? ownership.reason : "it is gone";
    return [
      problem("INACCESSIBLE", "RecordDamaged", `the record in the disk's comment is damaged: ${reason}`),
    ];
  }
  if (ownership.state !== "owned") return undefined;
  const ownImage = usesOwnImage(ownership.volume, cluster);
  return [
    ...imageProblems(stored, images, ownImage),
    ...exportProblems(ownership.volume),
    ...restartProblems(ownership.volume, boot),
    ...sharerProblems(stored, images),
    ...useProblems(stored),
  ];
}

function imageProblems(stored: StoredVolume, images: Images, ownImage: boolean): HealthProblem[] {
  const { imagePath, sizeBytes } = stored;
  const { pools, files } = images;
  if (!ownImage) {
    return [
      problem(
        "INACCESSIBLE",
        "ForeignImage",
        `the disk uses a file that is not the volume's image: path=${imagePath}`,
      ),
    ];
  }
  const pool = pools.find((pool) => pool.mountPoint === poolOf(imagePath));
  const reason = whyPoolUnreadable(images, imagePath);
  if (reason !== undefined) return [problem("DEGRADED", "DiskUnreadable", reason)];
  if (pool === undefined) {
    return [problem("INACCESSIBLE", "PoolNotMounted", `the pool is not mounted: pool=${poolOf(imagePath)}`)];
  }
  const image = files.get(imagePath);
  if (image === undefined) {
    return [
      ...poolProblems(pool),
      problem("DATA_LOSS", "ImageMissing", `the image is gone: path=${imagePath}`),
    ];
  }
  const sizes = `file=${image.sizeBytes} disk=${sizeBytes}`;
  return [
    ...poolProblems(pool),
    ...(image.sizeBytes < sizeBytes
      ? [problem("DATA_LOSS", "ImageTooSmall", `the image is smaller than the disk: ${sizes}`)]
      : image.sizeBytes > sizeBytes
      ? [problem("DEGRADED", "SizeMismatch", `the image is larger than the disk: ${sizes}`)]
      : []),
  ];
}

function poolProblems(pool: Pool): HealthProblem[] {
  const reason = describeUnsoundPool(pool);
  return reason === undefined ? [] : [poolDegraded(`the pool's array has a fault: ${reason}`)];
}

function poolDegraded(message: string): HealthProblem {
  return problem("DEGRADED", "PoolDegraded", message);
}

/** The faults of what the pool lies on that endanger it, but its redundancy. */
const failures: readonly HardwareReason[] = ["DriveUnreliable", "DriveReadOnly"];

/**
 * The problems of a volume, and those that the critical faults of drives and arrays below its pool are. A pool that is
 * degraded anyhow is so once.
 */
export function withHardware(
  problems: readonly HealthProblem[],
  faults: readonly HardwareFinding[],
): readonly HealthProblem[] {
  if (faults.length === 0) return problems;
  const messages = (isFailure: boolean) =>
    faults.filter(({ reason }) => failures.includes(reason) === isFailure).map(({ message }) => message);
  const [degraded, failing] = [messages(false), messages(true)];
  const isKnown = problems.some(({ reason }) => reason === "PoolDegraded");
  return [
    ...problems,
    ...degraded.length === 0 || isKnown ? [] : [poolDegraded(degraded.join("; "))],
    ...failing.length === 0 ? [] : [problem("DEGRADED", "DriveFailing", failing.join("; "))],
  ];
}

function exportProblems(volume: OwnedVolume): HealthProblem[] {
  const { stored, record } = volume;
  const nodes = nodeIdsOf(record.holders).join(", ");
  if (record.holders.length === 0) {
    return stored.exported
      ? [problem("DEGRADED", "ExportedWithoutHolder", "the volume is exported, but no node holds it")]
      : [];
  }
  if (isExportedAsRecorded(volume)) return [];
  return stored.exported
    ? [
      problem(
        "INACCESSIBLE",
        "ExportedDifferently",
        `the volume is exported under an NQN that its nodes do not know: ` +
          `nqn=${stored.exportNqn} node=${nodes}`,
      ),
    ]
    : [
      problem(
        "INACCESSIBLE",
        "NotExported",
        `the export is off while a node holds the volume: node=${nodes}`,
      ),
    ];
}

/** The router reports its uptime in seconds, and it is read a moment before it is judged. */
const bootErrorMs = 5000;

/**
 * The kernels of these nodes have dropped the device, so its users must be restarted. Whether they have been is not
 * visible here. Nor is a device layer that comes from the node's own setting.
 */
function restartProblems({ record, stored }: OwnedVolume, boot: RouterBoot | undefined): HealthProblem[] {
  if (boot === undefined || boot.isLayered(stored.id)) return [];
  const { atMs } = boot;
  const before = record.holders.filter(({ sinceSeconds }) => sinceSeconds * 1000 < atMs - bootErrorMs);
  if (before.length === 0) return [];
  const message = `the router restarted and gave the volume a new identity: delete the pods that ` +
    `have run since before ${new Date(atMs).toISOString()}, unless the node's device layer ` +
    `(node.deviceLayer) let them wait: node=${nodeIdsOf(before).join(", ")}`;
  return [problem("DEGRADED", "RouterRestarted", message)];
}

function sharerProblems({ id, imagePath }: StoredVolume, { users, secondUsers }: Images): HealthProblem[] {
  const first = users.get(imagePath);
  const sharer = first === id ? secondUsers.get(imagePath) : first;
  return sharer === undefined
    ? []
    : [problem("DEGRADED", "ImageShared", `another disk uses the same image: disk=${sharer}`)];
}

function useProblems({ routerUses, mayBeMounted }: StoredVolume): HealthProblem[] {
  if (routerUses !== undefined) {
    const message = `the router itself uses the disk: ${routerUses.join(", ")}`;
    return [problem("DEGRADED", "UsedByRouter", message)];
  }
  if (!mayBeMounted) return [];
  const message = "the router mounts a file system that it finds in the disk: mount-filesystem=yes";
  return [problem("DEGRADED", "MayBeMounted", message)];
}

/** Problems of volumes whose image exists without a disk entry. */
function lostDisks(
  files: readonly StoredFile[],
  known: ReadonlySet<string>,
  cluster: string,
  basePaths: readonly string[],
): VolumeHealth[] {
  const form = new RegExp(`^([a-z0-9-]{1,40})\\.${cluster}(?:\\.img|/disk\\.img)$`);
  return files.flatMap((file) => {
    // One allowed folder may lie in another one.
    const inside = basePaths.filter((base) => file.path.startsWith(`${base}/`));
    const [id] = inside.flatMap((base) => form.exec(file.path.slice(base.length + 1))?.[1] ?? []);
    if (id === undefined || file.directory || known.has(id)) return [];
    const message = `the image exists, but its disk entry is missing: path=${file.path}`;
    return [{ id, problems: [problem("INACCESSIBLE", "DiskMissing", message)] }];
  });
}

function problem(status: HealthStatus, reason: string, message: string): HealthProblem {
  return { status, reason, message };
}
