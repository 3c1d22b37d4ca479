import { VolumeError } from "../../errors.ts";
import { digest } from "../digest.ts";
import { assertName, isVolumeId } from "../ids/ids.ts";
import { leftoversOf } from "../layout.ts";
import type { ImageLocation, Pool, StoredFile } from "../inventory.ts";

/**
 * A snapshot, as its name on the router describes it: a snapshot has no comment for a record.
 *
 * The name is `snap-<28 hex digits>.<source>.<time>.<letter>.<cluster hash>`. It names a folder (a Btrfs subvolume)
 * that contains the image, or a file with the ending `.img`.
 */
export interface SnapshotName {
  /**
   * `snap-` and 28 hex digits: one character more than any volume id may have, so that neither is mistaken for the
   * other.
   */
  readonly id: string;
  /** Id of the source volume. */
  readonly source: string;
  /** Seconds since the Unix epoch. */
  readonly createdAtSeconds: number;
  /** Whether the source had never been published, so that the snapshot holds no data. */
  readonly blank: boolean;
  /** Whether the source is encrypted. */
  readonly encrypted: boolean;
  /** Hash of the cluster that owns it. */
  readonly cluster: string;
}

/** A snapshot on the router. */
export interface StoredSnapshot extends SnapshotName {
  /** Path of its image. */
  readonly imagePath: string;
  readonly sizeBytes: bigint;
  /** False while its image is still being copied. */
  readonly ready: boolean;
}

/** A text that every snapshot's path contains. */
export const anySnapshot = "/snap-";

/** The letters of a snapshot's content. */
const contentLetters = { b: "blank", n: "data", c: "encrypted blank", e: "encrypted data" } as const;

/** The part of a regular expression that stands for the letter of a snapshot's content. */
export const contentLetterForm = `[${Object.keys(contentLetters).join("")}]`;

const nameForm =
  /\/(snap-[0-9a-f]{28}\.[a-z0-9-]{1,40}\.[0-9a-z]{1,8}\.[bnce]\.[0-9a-f]{8})(?:$|\/disk\.img$|\.img$|\.img\.[0-9a-f]{8}\.part$)/;
const pathForm =
  /\/(snap-[0-9a-f]{28})\.([a-z0-9-]{1,40})\.([0-9a-z]{1,8})\.([bnce])\.([0-9a-f]{8})(\/disk\.img|\.img|\.img\.[0-9a-f]{8}\.part)$/;

/** The name of a snapshot's folder, or of its file without `.img`. */
export function formatSnapshotName(snapshot: SnapshotName): string {
  const { id, source, createdAtSeconds, cluster } = snapshot;
  return `${id}.${source}.${createdAtSeconds.toString(36)}.${contentLetter(snapshot)}.${cluster}`;
}

function contentLetter({ blank, encrypted }: SnapshotName): keyof typeof contentLetters {
  if (encrypted) return blank ? "c" : "e";
  return blank ? "b" : "n";
}

/** A text that every path of one snapshot contains, and no path of another one. */
export function snapshotPart(id: string): string {
  return `/${id}.`;
}

/** A text that every path of a snapshot of that volume contains. */
export function sourcePart(volumeId: string): string {
  return `.${volumeId}.`;
}

/** The snapshots among files, of any cluster, ordered by id and then by age. A folder alone is no snapshot. */
export function parseSnapshots(files: readonly StoredFile[]): StoredSnapshot[] {
  const found = files.flatMap((file) => {
    const match = file.directory ? null : pathForm.exec(file.path);
    if (match === null || !isVolumeId(match[2]!)) return [];
    return [{
      id: match[1]!,
      source: match[2]!,
      createdAtSeconds: parseInt(match[3]!, 36),
      blank: contentOf(match[4]!).endsWith("blank"),
      encrypted: contentOf(match[4]!).startsWith("encrypted"),
      cluster: match[5]!,
      imagePath: file.path,
      sizeBytes: file.sizeBytes,
      ready: !match[6]!.endsWith(".part"),
    }];
  });
  return found.toSorted((a, b) => compare(a.id, b.id) || a.createdAtSeconds - b.createdAtSeconds);
}

function contentOf(letter: string): string {
  return contentLetters[letter as keyof typeof contentLetters];
}

/**
 * The name of the snapshot that has this folder as its subvolume, whatever it contains; undefined for anything else.
 */
export function parseSnapshotFolder({ path, directory }: StoredFile): SnapshotName | undefined {
  if (!directory) return undefined;
  const [snapshot] = parseSnapshots([{ path: `${path}.img`, sizeBytes: 0n, directory: false }]);
  return snapshot;
}

/**
 * Snapshots of one cluster in the allowed folders, one of each id: a complete one is preferred to one that is still
 * being copied. A snapshot in another folder is a foreign copy: no call would delete it.
 */
export function ownSnapshots(
  snapshots: readonly StoredSnapshot[],
  cluster: string,
  basePaths: readonly string[],
): StoredSnapshot[] {
  const byId = new Map<string, StoredSnapshot>();
  for (const snapshot of snapshots) {
    if (snapshot.cluster !== cluster || !basePaths.some((base) => isIn(base, snapshot))) continue;
    const known = byId.get(snapshot.id);
    if (known === undefined || (snapshot.ready && !known.ready)) byId.set(snapshot.id, snapshot);
  }
  return [...byId.values()];
}

function isIn(base: string, { imagePath, id }: StoredSnapshot): boolean {
  return imagePath.startsWith(`${base}${snapshotPart(id)}`);
}

/** Paths of the unfinished copies of one snapshot of one cluster, in the allowed folders. */
export function unfinishedSnapshots(
  files: readonly StoredFile[],
  id: string,
  cluster: string,
  basePaths: readonly string[],
): string[] {
  return parseSnapshots(files).filter((one) =>
    !one.ready && one.id === id && one.cluster === cluster && basePaths.some((base) => isIn(base, one))
  ).map((one) => one.imagePath);
}

/**
 * Refuses a snapshot that was made from another source than requested.
 *
 * @throws {VolumeError} exists-incompatible
 */
export function assertSameSource(snapshot: SnapshotName, source: string): void {
  if (snapshot.source === source) return;
  throw new VolumeError(
    "exists-incompatible",
    `Cannot create the snapshot because another volume has a snapshot of that name: snapshot=${snapshot.id} ` +
      `source=${snapshot.source} requested=${source}`,
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Everything on the router that belongs to one snapshot of one cluster, in the allowed folders, to be removed: its
 * subvolume or its file, and unfinished copies.
 *
 * @param files every file and folder of the snapshot, see {@linkcode snapshotPart}
 */
export function snapshotLocations(
  files: readonly StoredFile[],
  id: string,
  cluster: string,
  basePaths: readonly string[],
  pools: readonly Pool[],
): ImageLocation[] {
  const names = new Set(files.flatMap((file) => nameForm.exec(file.path)?.[1] ?? []));
  return [...names].filter((name) => name.startsWith(`${id}.`) && name.endsWith(`.${cluster}`))
    .flatMap((name) => leftoversOf(files, name, basePaths, pools));
}

const snapshotIdForm = /^snap-[0-9a-f]{28}$/;

/**
 * The id of the snapshot of a CSI name: `snap-` and 28 hex digits, one character more than any volume id may have. The
 * digits depend on the whole name and on the cluster, so that neither two names nor two clusters on one router share an
 * id.
 *
 * @throws {VolumeError} invalid when the name is empty, over 128 bytes or has control characters
 */
export function snapshotIdFor(name: string, cluster: string): string {
  assertName(name);
  return `snap-${digest(`${cluster} ${name}`, 28)}`;
}

/** Whether the text has the form of a snapshot id. No volume id has it. */
export function isSnapshotId(id: string): boolean {
  return snapshotIdForm.test(id);
}
