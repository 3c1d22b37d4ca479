import { isVolumeId, parentFolder, poolOf } from "../model/ids/ids.ts";
import { volumeOfImage } from "../model/image_names.ts";
import type { Pool, StoredFile, StoredVolume } from "../model/inventory.ts";
import {
  describePlate,
  formatPlate,
  type NamePlate,
  type ObjectName,
  parsePlates,
  platesFolder,
  type StoredPlate,
} from "../model/name_plates.ts";
import { parseSnapshots } from "../model/snapshots/snapshots.ts";
import { judgeOwnership } from "./ownership.ts";

/** The most plates that are written. */
export const maxPlates = 2_000;
/** The most folders that are made and removed at once. */
export const maxPlateChanges = 20;

/** The input of {@linkcode planPlates}. */
export interface PlateView {
  /** Hash of the cluster's id. */
  readonly cluster: string;
  readonly basePaths: readonly string[];
  /** The mounted pools. */
  readonly pools: readonly Pool[];
  /** Every file-backed disk of the router. */
  readonly disks: readonly StoredVolume[];
  /** The plates, with their folders. */
  readonly files: readonly StoredFile[];
  /** What the cluster calls its volumes and snapshots. */
  readonly names: readonly ObjectName[];
  /** Whether there are to be plates. @default {true} */
  readonly isWanted?: boolean;
  /** How many of the missing plates are left for another time, because the router refused some. @default {0} */
  readonly skip?: number;
}

/** The folders that are to be made and removed. */
export interface PlatePlan {
  /** Paths in the order in which they are made. */
  readonly add: readonly string[];
  /** Plates of an earlier name: the present ones are there, or none is wanted. */
  readonly replaced: readonly string[];
  /** Plates of ids that neither the cluster nor a disk has. Images and snapshots may be left. */
  readonly idle: readonly StoredPlate[];
  /** Folders without plates, which nothing needs. */
  readonly empty: readonly string[];
  /** Whether there are more names than plates may be. */
  readonly isOverLimit: boolean;
}

/** A plate that should be there. */
interface WantedPlate {
  /** Of the volume or the snapshot. */
  readonly id: string;
  readonly path: string;
}

/** What differs between the plates and the cluster. A plate is missing at most while another one has its place. */
export function planPlates(view: PlateView): PlatePlan {
  const { cluster, basePaths, disks, files, names, isWanted = true } = view;
  const plates = parsePlates(files, cluster, basePaths);
  const wanted = isWanted ? wantedPlates(view) : new Map<string, WantedPlate>();
  const shown = new Set(plates.map(({ path }) => nameOf(path)));
  const removable = plates.filter(({ isFull, path }) => !isFull && !wanted.has(nameOf(path)));
  const missing = [...wanted].flatMap(([text, one]) => shown.has(text) ? [] : [one]);
  const folders = basePaths.map((base) => `${base}/${platesFolder(cluster)}`);
  const isThere = (folder: string) => files.some(({ path }) => path === folder);
  const needed = new Set([...wanted.values()].map(({ path }) => parentFolder(path)));
  // Whatever they are called: a router may make a plate under another name than it was told.
  const used = files.filter(({ path }) => folders.includes(parentFolder(path))).length;
  const outdated = new Set(removable.map(({ id }) => id));
  const { add, isOverLimit } = withinLimit(missing, outdated, maxPlates - used, view.skip);
  const made = folders.filter((folder) =>
    !isThere(folder) && add.some((path) => parentFolder(path) === folder)
  );
  const named = new Set(names.map(({ id }) => id));
  const slots = new Set(disks.map(({ id }) => id));
  const incomplete = new Set(missing.map(({ id }) => id));
  // A cluster that takes the place of a lost one keeps that one's plates until it knows the volumes.
  const settled = isWanted ? new Set([...wanted.values()].map(({ id }) => id)) : named;
  return {
    add: [...made, ...add].slice(0, maxPlateChanges),
    replaced: removable.filter(({ id }) => settled.has(id) && !incomplete.has(id)).map(({ path }) => path),
    idle: removable.filter(({ id }) => !named.has(id) && !slots.has(id)),
    empty: folders.filter((folder) =>
      isThere(folder) && !needed.has(folder) && !files.some(({ path }) => path.startsWith(`${folder}/`))
    ),
    isOverLimit,
  };
}

/** The plates that can be made. One whose volume has an outdated plate may be one too many until that is removed. */
function withinLimit(
  missing: readonly WantedPlate[],
  outdated: ReadonlySet<string>,
  room: number,
  skip = 0,
): { readonly add: readonly string[]; readonly isOverLimit: boolean } {
  const others = missing.filter(({ id }) => !outdated.has(id));
  const fresh = others.slice(0, Math.max(0, room));
  const renewed = missing.filter(({ id }) => outdated.has(id))
    .slice(0, Math.max(0, room - fresh.length + maxPlateChanges));
  const all = [...fresh, ...renewed].map(({ path }) => path).toSorted();
  const from = all.length === 0 ? 0 : skip % all.length;
  const add = [...all.slice(from), ...all.slice(0, from)].slice(0, maxPlateChanges);
  return { add, isOverLimit: others.length > fresh.length };
}

/** The plates that should be there, by their names; those of the volumes in the base folder of their image. */
function wantedPlates(view: PlateView): ReadonlyMap<string, WantedPlate> {
  const { cluster, basePaths, names } = view;
  const named = new Set(names.map(({ id }) => id));
  const own = new Map(
    view.disks.flatMap((disk) => named.has(disk.id) && isOwn(disk, cluster) ? [[disk.id, disk]] : []),
  );
  const homeOf = (disk: StoredVolume | undefined) =>
    basePaths.find((base) => disk?.imagePath.startsWith(`${base}/`));
  const open = openFolders(view, new Set([...own.values()].map(homeOf)));
  const wanted = new Map<string, WantedPlate>();
  for (const name of names) {
    const disk = own.get(name.id);
    if (isVolumeId(name.id) && disk === undefined) continue;
    const home = homeOf(disk);
    const base = home === undefined ? open[0] : open.find((base) => base === home);
    const text = formatPlate(name);
    if (base === undefined || text === undefined) continue;
    wanted.set(text, { id: name.id, path: `${base}/${platesFolder(cluster)}/${text}` });
  }
  return wanted;
}

/**
 * The base folders that can have plates: those with volumes of the cluster, or plates already. Without its pool a path is one on
 * the router's own storage, or below a mount point, where nobody sees it.
 */
function openFolders(
  { cluster, basePaths, pools, files }: PlateView,
  homes: ReadonlySet<string | undefined>,
): readonly string[] {
  const mounted = new Set(pools.map(({ mountPoint }) => mountPoint));
  const shown = new Set(files.map(({ path }) => path));
  return basePaths.filter((base) =>
    mounted.has(poolOf(base)) && (homes.has(base) || shown.has(`${base}/${platesFolder(cluster)}`))
  );
}

/** Whether the cluster may have the disk: one with a record of its own or a damaged one, or one of the legacy driver. */
function isOwn(disk: StoredVolume, cluster: string): boolean {
  const { state } = judgeOwnership(disk, cluster);
  return state === "owned" || state === "damaged" || state === "earlier-driver";
}

/** Those of the plates of whose id nothing is left among the cluster's files. */
export function plateLeftovers(
  plates: readonly StoredPlate[],
  files: readonly StoredFile[],
  cluster: string,
): readonly string[] {
  const left = new Set([
    ...files.flatMap(({ path }) => {
      const own = path.split("/").find((name) => name.includes(`.${cluster}`));
      return [own?.slice(0, own.indexOf(".")) ?? volumeOfImage(path, cluster) ?? ""];
    }),
    // A volume of which only snapshots are left is somebody's still.
    ...parseSnapshots(files).flatMap(({ id, source }) => [id, source]),
  ]);
  return plates.filter(({ id }) => !left.has(id)).map(({ path }) => path);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** What is known of a volume or a snapshot by the plates of its id. */
export type PlateVerdict = { readonly plate: NamePlate } | {
  /** Why nothing can be rebuilt, for people. */
  readonly reason: string;
};

/**
 * What the plates of each id say. Any doubt rebuilds nothing: a cut plate, two names of one id, and a claim that two volumes
 * had, or may have had, one of which the reclaim policy Retain has kept.
 */
export function judgePlates(plates: readonly NamePlate[]): ReadonlyMap<string, PlateVerdict> {
  const all = [...new Map(plates.map((plate) => [keyOf(plate), plate])).values()];
  const volumes = all.filter(({ id }) => isVolumeId(id));
  const claims = Map.groupBy(volumes.filter(({ isCut }) => !isCut), describePlate);
  const cut = volumes.filter(({ isCut }) => isCut);
  const byId = Map.groupBy(all, ({ id }) => id);
  return new Map([...byId].map(([id, own]) => [id, judge(own, claims, cut)]));
}

function judge(
  own: readonly NamePlate[],
  claims: ReadonlyMap<string, readonly NamePlate[]>,
  cut: readonly NamePlate[],
): PlateVerdict {
  const plate = own[0]!;
  if (own.length > 1) {
    return { reason: `it has ${own.length} name plates: ${own.map(describeWhole).join(", ")}` };
  }
  if (plate.isCut) return { reason: `its name plate is cut: ${describePlate(plate)}` };
  if (!isVolumeId(plate.id)) return { plate };
  const claim = `the claim ${describePlate(plate)}`;
  const sharers = idsBeside(plate, claims.get(describePlate(plate)) ?? []);
  if (sharers.length > 0) return { reason: `${claim} is that of ${sharers.join(", ")} too` };
  // A longer id leaves less room for the same claim.
  const others = idsBeside(plate, cut.filter((one) => isBeginning(one, plate)));
  if (others.length === 0) return { plate };
  return { reason: `${claim} may be on the cut name plate of ${others.join(", ")} too` };
}

function idsBeside({ id }: NamePlate, plates: readonly NamePlate[]): readonly string[] {
  return [...new Set(plates.map((plate) => plate.id))].filter((other) => other !== id);
}

/** Whether the names on a cut plate may be the beginnings of these. Its class may be another one. */
function isBeginning(cut: NamePlate, { namespace, name }: NamePlate): boolean {
  return namespace.startsWith(surely(cut.namespace)) && name.startsWith(surely(cut.name));
}

/** A plus at the end of what is left of a name is a dot, or has lost the dash behind it. */
function surely(beginning: string): string {
  return beginning.replace(/\.$/, "");
}

/** Two plates may differ in nothing but the class. */
function describeWhole(plate: NamePlate): string {
  return `${describePlate(plate)} of ${plate.className === "" ? "no class" : `the class ${plate.className}`}`;
}

function keyOf({ id, namespace, name, className, isCut }: NamePlate): string {
  return [id, namespace, name, className, isCut].join(" ");
}
