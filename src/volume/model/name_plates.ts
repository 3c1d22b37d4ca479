import { isVolumeId, parentFolder } from "./ids/ids.ts";
import { isSnapshotId } from "./snapshots/snapshots.ts";
import type { StoredFile } from "./inventory.ts";

/** What people call a volume or a snapshot. */
export interface ObjectName {
  /** The id of the volume or the snapshot. */
  readonly id: string;
  readonly namespace: string;
  /** The name of the claim or the VolumeSnapshot. */
  readonly name: string;
  /** The name of the StorageClass or VolumeSnapshotClass; "" for none. */
  readonly className: string;
}

/** An empty folder on the router whose name says what people call a volume. A hint for people: no rule reads it. */
export interface NamePlate extends ObjectName {
  /** Whether its names were too long: they are only the beginnings then. */
  readonly isCut: boolean;
}

/** A name plate on the router. */
export interface StoredPlate extends NamePlate {
  /** With one leading slash. */
  readonly path: string;
  /** Whether something is in it, which a person must have put there. */
  readonly isFull: boolean;
}

/** The longest name of a plate, in bytes. */
export const maxPlateBytes = 160;

/** The longest parts of a cut name, in bytes; what is left is the claim's. */
const maxCut = { namespace: 63, className: 24 };

const labelForm = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
const subdomainForm = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;

/**
 * The name of the folder of a cluster's plates in a base folder. No file of a volume or a snapshot has it, and the mark
 * follows no dot, by which the cluster's files are found.
 *
 * @param cluster hash of the cluster's id
 */
export function platesFolder(cluster: string): string {
  return `names-of-${cluster}`;
}

/**
 * The name of a plate, `<namespace>_<claim>_<class>_<id>`, or that of a snapshot; undefined where Kubernetes or this driver has
 * no such names. It holds no dot and none of the texts by which files are found, so no query about a volume meets it.
 */
export function formatPlate({ id, namespace, name, className }: ObjectName): string | undefined {
  const isNamed = labelForm.test(namespace) && subdomainForm.test(name) &&
    (className === "" || subdomainForm.test(className));
  if (!isNamed || !isVolumeId(id) && !isSnapshotId(id)) return undefined;
  const parts = [escaped(namespace).replace(/^(pvc|snap)-/, "$1+-"), escaped(name), escaped(className)];
  const end = escaped(id);
  const whole = [...parts, end].join("_");
  if (whole.length <= maxPlateBytes) return whole;
  const [first, last] = [parts[0]!.slice(0, maxCut.namespace), parts[2]!.slice(0, maxCut.className)];
  const left = maxPlateBytes - `${first}__${last}_${end}~`.length;
  return `${first}_${parts[1]!.slice(0, left)}_${last}_${end}~`;
}

/** Reads the name of a plate; undefined for every text that {@linkcode formatPlate} does not make. */
export function parsePlate(text: string): NamePlate | undefined {
  const isCut = text.endsWith("~");
  const parts = (isCut ? text.slice(0, -1) : text).split("_");
  if (parts.length !== 4 || text.length > maxPlateBytes) return undefined;
  const [namespace, name, className, id] = parts.map(unescaped) as [string, string, string, string];
  const plate = { id, namespace, name, className, isCut };
  if (!isCut) return formatPlate(plate) === text ? plate : undefined;
  const isId = isVolumeId(id) || isSnapshotId(id);
  return isId && /^[a-z0-9+_-]+~$/.test(text) ? plate : undefined;
}

/** A dot becomes a plus, and a text by which the driver finds files gets one before its dash: no name has `+-` otherwise. */
function escaped(name: string): string {
  return name.replaceAll(".", "+").replace(
    /pvc-(?=[0-9a-f]{8}-)|rds-csi-probe-/g,
    (found) => `${found.slice(0, -1)}+-`,
  );
}

function unescaped(text: string): string {
  return text.replaceAll("+-", "-").replaceAll("+", ".");
}

/**
 * The plates of a cluster in the allowed folders, ordered by path.
 *
 * @param basePaths undefined for those of every folder
 */
export function parsePlates(
  files: readonly StoredFile[],
  cluster: string,
  basePaths: readonly string[] | undefined,
): StoredPlate[] {
  const inside = `/${platesFolder(cluster)}/`;
  const folders = basePaths?.map((base) => base + inside);
  const folderOf = (path: string) => {
    if (folders !== undefined) return folders.find((folder) => path.startsWith(folder));
    const at = path.lastIndexOf(inside);
    return at < 0 ? undefined : path.slice(0, at + inside.length);
  };
  const full = new Set(files.map(({ path }) => parentFolder(path)));
  const found = files.flatMap(({ path, directory }): StoredPlate[] => {
    const folder = folderOf(path);
    const plate = folder === undefined || !directory ? undefined : parsePlate(path.slice(folder.length));
    if (plate === undefined) return [];
    return [{ ...plate, path, isFull: full.has(path) }];
  });
  return found.toSorted((a, b) => a.path < b.path ? -1 : 1);
}

/** A plate for people: `default/data`. */
export function describePlate({ namespace, name, isCut }: NamePlate): string {
  return `${namespace}/${name}${isCut ? "…" : ""}`;
}

/** By id, what people call it, for {@linkcode withNames}. Of several plates all. */
export function namesById(plates: readonly NamePlate[]): ReadonlyMap<string, string> {
  const byId = Map.groupBy(plates, ({ id }) => id);
  return new Map([...byId].map(([id, own]) => [id, [...new Set(own.map(describePlate))].join(" or ")]));
}

/** The words of a text that may be ids, not within a path or an NQN. A word without a digit or dash may be English. */
const idWords = /(?<![A-Za-z0-9._/:+-])[a-z0-9-]*[0-9-][a-z0-9-]*(?![A-Za-z0-9_/-]|[.:+][A-Za-z0-9])/g;

/** A text for people with the name of each volume and snapshot behind its id. */
export function withNames(text: string, names: ReadonlyMap<string, string>): string {
  return text.replace(idWords, (word) => {
    const name = names.get(word);
    return name === undefined ? word : `${word} [${name}]`;
  });
}
