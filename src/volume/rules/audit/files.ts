import type { AuditKind } from "../../model/audit_kinds.ts";
import {
  type AuditFinding,
  type AuditScope,
  type AuditView,
  keptForAge,
  orphanGraceMs,
  whySubvolumeKept,
} from "./finding.ts";
import { isLegacyId, isVolumeId } from "../../model/ids/ids.ts";
import type { StoredFile } from "../../model/inventory.ts";
import { formatBytes } from "../../model/sizes.ts";
import { parseSnapshotFolder, parseSnapshots, type StoredSnapshot } from "../../model/snapshots/snapshots.ts";

/** How long a copy may take, in milliseconds. A younger copy may belong to another process that is still making it. */
const longestCopyMs = 25 * 3_600_000;

/** Files and folders of this cluster that no disk uses, in the allowed folders. */
export function orphanFiles(view: AuditView, scope: AuditScope): AuditFinding[] {
  const own = view.files.flatMap((file) => ownFile(file, scope));
  return [
    ...own.flatMap((file) => judgeFile(file, view, scope)),
    ...judgeSnapshots(view, scope),
    ...emptySnapshots(view, scope),
    ...legacyImages(view, scope),
  ];
}

/** A file or folder whose name belongs to this cluster. */
interface OwnFile {
  readonly id: string;
  /** The text after the file-name prefix of the volume. */
  readonly rest: string;
  readonly file: StoredFile;
}

function ownFile(file: StoredFile, { cluster, basePaths }: AuditScope): OwnFile[] {
  const form = new RegExp(
    `^([a-z0-9-]{1,40})[.]${cluster}(|[.]img|/disk[.]img|[.]img[.][0-9a-f]{8}[.]part)$`,
  );
  // One allowed folder may lie in another one.
  const matches = basePaths.flatMap((base) =>
    file.path.startsWith(`${base}/`) ? form.exec(file.path.slice(base.length + 1)) ?? [] : []
  );
  const [, id, rest] = matches;
  return id !== undefined && isVolumeId(id) ? [{ id, rest: rest ?? "", file }] : [];
}

function judgeFile(
  { id, rest, file }: OwnFile,
  view: AuditView,
  scope: AuditScope,
): AuditFinding[] {
  const { path, directory } = file;
  const finding = (kind: AuditKind, found: string, kept: string | undefined): AuditFinding[] => [
    { kind, id, path, found, sinceSeconds: undefined, kept },
  ];
  if (view.users.has(path) || view.users.has(`${path}/disk.img`)) return [];
  if (rest.endsWith(".part") && !directory) {
    const kept = scope.isCopying(id) ? "it is being made" : undefined;
    return finding("unfinished-copy", `an unfinished copy of ${formatBytes(file.sizeBytes)}`, kept);
  }
  const kept = whyImageKept(id, view, scope) ?? whySubvolumeKept(view, path);
  if (directory) {
    const hasImage = view.paths.has(`${path}/disk.img`);
    if (rest !== "" || hasImage) return [];
    return finding("leftover-subvolume", "a subvolume of this cluster with no image and no disk", kept);
  }
  return rest === ""
    ? []
    : finding("image-without-disk", `an image of ${formatBytes(file.sizeBytes)} that no disk uses`, kept);
}

function whyImageKept(id: string, view: AuditView, scope: AuditScope): string | undefined {
  if (scope.isCopying(id)) return "a copy is being made";
  if (view.disks.has(id)) {
    return "a disk of that volume uses another file: check by hand which one is right";
  }
  if (view.sources.has(id)) return "snapshots or volumes were made from it";
  if (scope.used === undefined) {
    return scope.vouched ? undefined : "no cluster was asked whether a PersistentVolume names it";
  }
  return isNamed(id, view, scope) ? namedByVolume : undefined;
}

const namedByVolume = "a PersistentVolume names it: the data may be needed";

function isNamed(id: string, { named, attachments }: AuditView, { used }: AuditScope): boolean {
  return used?.others?.has(id) === true || named.has(id) || attachments.has(id);
}

/**
 * Findings for images of the legacy driver. Their names contain no cluster: only a PersistentVolume shows that one is
 * this cluster's.
 */
function legacyImages(view: AuditView, scope: AuditScope): AuditFinding[] {
  return view.files.flatMap(({ path, directory, sizeBytes }): AuditFinding[] => {
    const id = /([^/]*)[.]img$/.exec(path)?.[1] ?? "";
    const isInBase = scope.basePaths.some((base) => path === `${base}/${id}.img`);
    if (directory || !isLegacyId(id) || !isInBase) return [];
    if (view.users.has(path)) return [];
    const isOwn = isNamed(id, view, scope);
    return [{
      kind: isOwn ? "image-without-disk" : "earlier-image",
      id,
      path,
      found: `an image named as the legacy driver's are, that no disk uses: ${formatBytes(sizeBytes)}`,
      sinceSeconds: undefined,
      kept: isOwn ? namedByVolume : "its owner is not known: check by hand whether it is needed",
    }];
  });
}

function judgeSnapshots(view: AuditView, scope: AuditScope): AuditFinding[] {
  const { cluster, basePaths } = scope;
  const own = parseSnapshots(view.files).filter((one) =>
    one.cluster === cluster && basePaths.some((base) => one.imagePath.startsWith(`${base}/${one.id}.`))
  );
  return own.flatMap((snapshot) => judgeSnapshot(snapshot, view, scope));
}

function judgeSnapshot(
  { id, imagePath: path, source, ready, createdAtSeconds: sinceSeconds }: StoredSnapshot,
  view: AuditView,
  { isCopying, nowMs, used }: AuditScope,
): AuditFinding[] {
  if (!ready) {
    const kept = isCopying(id) ? "it is being made" : keptForAge(sinceSeconds, nowMs, longestCopyMs);
    const found = `a copy for a snapshot that is not finished: source=${source}`;
    return [{ kind: "unfinished-copy", id, path, found, sinceSeconds, kept }];
  }
  if (used?.snapshots?.has(id) === false) {
    const found = `a snapshot that no VolumeSnapshotContent names: source=${source}`;
    const kept = keptForAge(sinceSeconds, nowMs, orphanGraceMs);
    // A backup may refer to it by name alone: it is deleted only on a person's request, never for its age.
    return [{ kind: "snapshot-without-object", id, path, found, sinceSeconds: undefined, kept }];
  }
  if (view.disks.has(source)) return [];
  return [{
    kind: "snapshot-without-source",
    id,
    path,
    found: `a snapshot of a volume that is gone, which may be wanted so: source=${source}`,
    sinceSeconds,
    kept: "a VolumeSnapshot may name it: delete that object",
  }];
}

/**
 * Findings for subvolumes that are named as a snapshot of this cluster and hold no image. No list of snapshots shows
 * them.
 */
function emptySnapshots(view: AuditView, { cluster, basePaths }: AuditScope): AuditFinding[] {
  return view.files.flatMap((file): AuditFinding[] => {
    const { path } = file;
    const snapshot = parseSnapshotFolder(file);
    if (
      snapshot?.cluster !== cluster || !basePaths.some((base) => path.startsWith(`${base}/${snapshot.id}.`))
    ) {
      return [];
    }
    if (view.paths.has(`${path}/disk.img`)) return [];
    return [{
      kind: "leftover-subvolume",
      id: snapshot.id,
      path,
      found: `a snapshot's subvolume with no image in it: source=${snapshot.source}`,
      sinceSeconds: snapshot.createdAtSeconds,
      kept: "a VolumeSnapshot may name it: delete that object",
    }];
  });
}
