import { VolumeError } from "../../errors.ts";
import { digest } from "../digest.ts";
import { assertName } from "../ids/ids.ts";

/** The longest name that a directory keeps, in bytes: that of a PersistentVolume of a provisioner. */
const maxKeptBytes = 40;

const keptForm = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/;
const directoryForm = /^([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)\.([0-9a-f]{8})(\.deleted-[0-9a-f]{8})?$/;

/**
 * The name under which a directory is known, in its handle and on the router: the CSI name itself, or `pvc-` and 28 hex
 * digits of its SHA-256 where the name is too long or has characters that a path should not have.
 *
 * @throws {VolumeError} invalid when the name is empty, over 128 bytes or has control characters
 */
export function directoryNameFor(name: string): string {
  assertName(name);
  return name.length <= maxKeptBytes && keptForm.test(name) ? name : `pvc-${digest(name, 28)}`;
}

/**
 * Eight hex digits that represent a cluster in the names of its directories. They differ from the hash in the names of
 * images: `pvc-….<hash>` is a block volume's subvolume, and `disk.img` in it its image, which an audit may delete. A
 * directory of a virtual machine holds a file of that name.
 *
 * @param cluster hash of the cluster's id, see `clusterHash()`
 */
export function directoryMark(cluster: string): string {
  return digest(`${cluster} directories`, 8);
}

/** The last name of a directory that this driver makes: the volume's name, and the cluster's mark. */
export function markedName(name: string, mark: string): string {
  return `${name}.${mark}`;
}

/** The path to which a directory is renamed before it is removed. @param nonce eight hex digits */
export function deletedPath(path: string, nonce: string): string {
  return `${path}.deleted-${nonce}`;
}

/** The path that a directory had before it was deleted; the path itself of any other one. */
export function pathBeforeDeletion(path: string): string {
  return path.replace(/\.deleted-[0-9a-f]{8}$/, "");
}

/** What the last name of a path says about a directory. */
export interface MarkedDirectory {
  readonly path: string;
  /** The name in its handle. */
  readonly name: string;
  /** Whether it was deleted, and only waits for its removal. */
  readonly isDeleted: boolean;
}

/**
 * Finds the directories of a cluster among paths. What lies in one of them is the volume's own content, whatever its
 * name.
 */
export function markedDirectories(paths: readonly string[], cluster: string): readonly MarkedDirectory[] {
  const found: MarkedDirectory[] = [];
  for (const path of paths.toSorted()) {
    const names = path.split("/");
    const [, name, mark, deleted] = directoryForm.exec(names.pop() ?? "") ?? [];
    if (name === undefined || mark !== cluster || names.some((one) => isMarked(one))) continue;
    found.push({ path, name, isDeleted: deleted !== undefined });
  }
  return found;
}

/** Whether a name looks as if it carried the mark of some cluster, as `backup.20240101` does. */
export function isMarked(name: string): boolean {
  return directoryForm.test(name);
}

/**
 * Checks that no name in the path of a folder for directories looks like that of a volume: what lies in a volume is
 * never listed or deleted.
 *
 * @throws {VolumeError} invalid when one does
 */
export function assertUnmarked(key: string, path: string): void {
  const name = path.split("/").find(isMarked);
  if (name === undefined) return;
  throw new VolumeError(
    "invalid",
    `Cannot use the parameter: ${key}=${JSON.stringify(path)}; ` +
      `use folders that do not end in a dot and eight digits of 0-9 and a-f, as volumes do: ${name}`,
  );
}
