import { assertPoolMounted, assertSettled } from "./absence.ts";
import { type AccessMode, formatCapabilities, type VolumeKind } from "../model/capabilities.ts";
import { epochZero } from "../model/epoch.ts";
import { VolumeError } from "../errors.ts";
import { withdrawalSeconds } from "./grace.ts";
import { isLegacyId, nameDigest, poolOf } from "../model/ids/ids.ts";
import { importedSource, isImported } from "../model/sources.ts";
import { assertOwned, judgeOwnership } from "./ownership.ts";
import { adviceOnUses } from "./router_uses.ts";
import type { RouterState, StoredFile, StoredVolume } from "../model/inventory.ts";
import type { PublishFacts } from "./publish.ts";
import { type OwnedVolume, type RecordComment } from "../model/record.ts";

/** What a disk becomes as a volume. Only a person or the PersistentVolume can say that. */
export interface ImportClaim {
  readonly kind: VolumeKind;
  readonly mode: AccessMode;
  /** Whether a person vouches that an export that is on is unused: it is withdrawn then. */
  readonly exportIsUnused: boolean;
  /** Whether nodes encrypt it: only what this driver, or cryptsetup with its label, has encrypted can be staged. @default {false} */
  readonly encrypted?: boolean;
}

/** What was read besides a disk that is to be imported. */
export interface ImportScene extends RouterState {
  readonly cluster: string;
  readonly basePaths: readonly string[];
  readonly settleMs: number;
  /** Every file-backed disk. */
  readonly volumes: readonly StoredVolume[];
  /** Files and folders whose path contains that of the image. */
  readonly files: readonly StoredFile[];
}

/** The longest path of an image, in bytes: with it every command stays within the router's limit for one command. */
export const maxImagePathBytes = 128;

/** Sectors of disks, in bytes. */
const sectorBytes = 512n;

/** The form of this driver's names for files and folders of volumes and snapshots, of any cluster. */
const ownName =
  /^(?:snap-[0-9a-f]{28}[.].*|[a-z0-9-]{1,40})[.][0-9a-f]{8}(?:[.]img(?:[.][0-9a-f]{8}[.]part)?)?$/;

/**
 * Refuses a disk unless it certainly is a file of its own without another user.
 *
 * @param stored as a read of this disk alone returns it, with how the router uses it
 * @throws {VolumeError} precondition saying what prevents it and what to do; unavailable while disks may be missing
 */
export function assertImportable(stored: StoredVolume, claim: ImportClaim, scene: ImportScene): void {
  const { id, sizeBytes, exported, exportNqn, comment } = stored;
  assertNobodys(stored, scene.cluster);
  assertNoOthersRecord(id, comment);
  const image = importableImage(id, stored.imagePath, scene);
  if (image.sizeBytes !== sizeBytes) {
    const sizes = `file=${image.sizeBytes} disk=${sizeBytes}`;
    throw doubt(id, `its file has another size than the disk: ${sizes}`, "a person has to look at it");
  }
  const uses = stored.routerUses ?? [];
  if (uses.length > 0) {
    throw doubt(
      id,
      `the router itself uses the disk: ${uses.join(", ")}`,
      adviceOnUses(id, uses),
    );
  }
  if (exported && !claim.exportIsUnused) {
    throw doubt(
      id,
      `it is exported and may be in use: nqn=${exportNqn}`,
      `check that no machine uses it, and turn the export off: /disk set [find slot="${id}"] nvme-tcp-export=no, or run ` +
        `rds-csi import ${id} --exported-is-unused`,
    );
  }
}

/**
 * Returns the file of a path, if it may become a volume's image.
 *
 * @throws {VolumeError} precondition when it may not; unavailable while that is unknown
 */
export function importableImage(id: string, path: string, scene: ImportScene): StoredFile {
  assertSlot(id);
  assertSettled(scene, scene.settleMs);
  assertImagePath(id, path);
  if (!scene.basePaths.some((base) => poolOf(base) === poolOf(path))) {
    // The driver concludes that a volume is gone only from those pools.
    throw doubt(
      id,
      "its file is on a pool without a folder of this driver: " +
        `path=${path} folders=${scene.basePaths.join(", ")}`,
      "add a folder of that pool by --base-path",
    );
  }
  assertPoolMounted(scene, path);
  const image = scene.files.find((file) => file.path === path);
  if (image === undefined) throw doubt(id, `its file does not exist: path=${path}`);
  if (image.directory) throw doubt(id, `its file is a folder: path=${path}`);
  if (image.sizeBytes === 0n || image.sizeBytes % sectorBytes !== 0n) {
    throw doubt(id, `its file is not made of whole sectors of ${sectorBytes} bytes: size=${image.sizeBytes}`);
  }
  const sharer = scene.volumes.find((other) => other.id !== id && plain(other.imagePath) === path);
  if (sharer !== undefined) throw doubt(id, `another disk uses its file: disk=${sharer.id}`);
  return image;
}

/**
 * The comment that makes a disk a volume of this cluster, never blank. Existing text stays before the record.
 *
 * The volume counts as withdrawn just now: it is unknown since when its export has been off, and an earlier user may
 * still write.
 */
export function importedComment(
  { id, imagePath, comment }: Pick<StoredVolume, "id" | "imagePath" | "comment">,
  { kind, mode, encrypted = false }: ImportClaim,
  cluster: string,
  forgotten: number,
  { nowMs, random }: PublishFacts,
): RecordComment {
  const record = {
    cluster,
    name: nameDigest(id),
    capabilities: formatCapabilities({ kind, modes: [mode], encrypted }),
    parameters: "00000000",
    // The epoch after one that the router has no record of must not look older than that one.
    epoch: { ...epochZero(random), counter: forgotten },
    blankEpoch: 0,
    withdrawnAtSeconds: withdrawalSeconds(nowMs),
    source: importedSource(id, imagePath),
    holders: [],
  };
  return { record, before: comment === "" ? "" : `${comment} `, after: "" };
}

/** @throws {VolumeError} precondition when it is a known volume, or may be one */
function assertNobodys(stored: StoredVolume, cluster: string): void {
  const { state } = judgeOwnership(stored, cluster);
  if (state === "owned") throw doubt(stored.id, "it is a volume of this cluster already");
  if (state !== "no-record") assertOwned(stored, cluster, "import");
}

/** Refuses a slot whose form no call could name, or that shows another owner. */
function assertSlot(id: string): void {
  if (!isLegacyId(id)) return;
  throw doubt(
    id,
    "its slot has the form of the legacy driver's volumes",
    `"rds-csi adopt ${id}" takes those over`,
  );
}

function assertNoOthersRecord(id: string, comment: string): void {
  const isPart = hasPartOfRecord(comment);
  if (!isPart && !/[{}]/.test(comment)) return;
  throw doubt(
    id,
    `its comment looks like ${isPart ? "a part of a record" : "a program's record"}: ` +
      `${JSON.stringify(comment.slice(0, 80))}`,
    "find the owner of the disk, and remove that text from the comment if there is none",
  );
}

function assertImagePath(id: string, path: string): void {
  if (
    !path.startsWith("/") || plain(path) !== path || !/^[\x20-\x7e]+$/.test(path) ||
    path.split("/").length < 3
  ) {
    throw doubt(id, `its file has no plain path: path=${JSON.stringify(path.slice(0, 160))}`);
  }
  if (path.length > maxImagePathBytes) {
    throw doubt(id, `the path of its file is too long: bytes=${path.length} most=${maxImagePathBytes}`);
  }
  const [, , ...names] = path.split("/");
  const marked = names.find((name) => ownName.test(name));
  if (marked !== undefined) {
    throw doubt(
      id,
      `its file is named as a volume's or a snapshot's of a cluster: name=${marked}`,
      "if no cluster uses it any more, remove its disk (the file stays), rename the file, and import " +
        "that by --path",
    );
  }
  const file = names.at(-1)!;
  if (file.endsWith(".img") && isLegacyId(file.slice(0, -".img".length))) {
    throw doubt(id, `its file is named as the legacy driver's are: name=${file}`, "rename it first");
  }
}

/** Normalises a path, so that one file has one text. */
function plain(path: string): string {
  const names: string[] = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return `/${names.join("/")}`;
}

function doubt(id: string, reason: string, advice?: string): VolumeError {
  const text = `Cannot import the disk because ${reason}: volume=${id}`;
  return new VolumeError("precondition", advice === undefined ? text : `${text}; ${advice}`);
}

/**
 * Refuses a volume that somebody else made.
 *
 * @throws {VolumeError} precondition saying what to do instead
 */
export function assertNotImported({ stored, record }: OwnedVolume, verb: string, advice: string): void {
  if (!isImported(record)) return;
  throw new VolumeError(
    "precondition",
    `Cannot ${verb} the volume because it was imported: volume=${stored.id} path=${stored.imagePath}; ${advice}`,
  );
}

/** Whether a comment without a record contains something that only a record has. */
export function hasPartOfRecord(text: string): boolean {
  return /\brds[0-9] |\bc=[0-9a-f]{8} n=[0-9a-f]/.test(text);
}
