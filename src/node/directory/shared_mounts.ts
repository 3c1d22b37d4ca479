import { Semaphore } from "../../async/semaphore.ts";
import { withDeadline } from "../../async/deadline.ts";
import { VolumeError } from "../../volume/errors.ts";
import { messageOf } from "../../volume/error_messages.ts";
import { digest } from "../../volume/model/digest.ts";
import { formatNfsAddresses } from "../../volume/model/directory/handle.ts";
import type { NfsShare } from "../../volume/ports/nfs_ports.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { isNfs, serverPath, usersOf } from "../../volume/rules/host/nfs_mounts.ts";
import { mountsAt } from "../../volume/rules/host/mounts_at.ts";
import type { DirectoryNodeDeps } from "./deps.ts";

/** How long an unpublish waits for another call on the same share, which then unmounts it instead. */
const turnMs = 5_000;
const keyForm = /^[0-9a-f]{16}$/;
const helperForm = /^bind-[0-9a-f]{16}$/;

/**
 * The name of a share's mount: 16 hex digits. Two volumes share a mount only if the server's addresses (in any order),
 * the export and all options are the same, because the kernel keeps options with the mount and not with its binds.
 * `ro` and `rw` are no such options: binds have them.
 */
export function mountKey({ addresses, export: exported, options }: NfsShare): string {
  const sorted = addresses.map((one) => formatNfsAddresses([one])).toSorted();
  return digest(JSON.stringify([sorted, exported, options.toSorted()]), 16);
}

/**
 * The node's NFS mounts, each shared by all volumes of its key. The first volume that needs one mounts it, and the last
 * one that leaves unmounts it. Who uses a mount is read from the mount table each time, so no crash and no restart can
 * make the count wrong.
 */
export class SharedMounts {
  readonly #deps: DirectoryNodeDeps;
  readonly #semaphores = new Map<string, Semaphore>();
  #folder: Promise<string> | undefined;

  constructor(deps: DirectoryNodeDeps) {
    this.#deps = deps;
  }

  /** The folder of all shares, as the kernel writes it. */
  async folder(): Promise<string> {
    const { paths, settings } = this.#deps;
    this.#folder ??= (async () => {
      const path = `${settings.statePath}/mounts`;
      await paths.makeFolder(path, 0o700);
      return await paths.mountPoint(path);
    })();
    try {
      return await this.#folder;
    } catch (error) {
      this.#folder = undefined;
      throw error;
    }
  }

  /**
   * Runs `work` with the share mounted, and passes it the mount point. If the work fails and no volume uses the share,
   * it is unmounted again.
   *
   * @throws {VolumeError} unavailable when no address of the share mounts; precondition when something else is there;
   *   whatever `work` throws
   */
  async using<T>(
    share: NfsShare,
    context: CallContext,
    work: (mountPoint: string) => Promise<T>,
  ): Promise<T> {
    const key = mountKey(share);
    const mountPoint = `${await this.folder()}/${key}`;
    return await this.#semaphoreOf(key).run(context.signal, async () => {
      try {
        await this.#ensure(share, mountPoint, context);
        return await work(mountPoint);
      } catch (error) {
        await this.#releaseQuietly(mountPoint);
        throw error;
      }
    });
  }

  /**
   * Binds a folder to a target by way of another bind in the driver's folder, a helper, which `prepare` proves and
   * changes first. So nothing unproven is ever at the target. It also makes a target read-only for everybody: a mount
   * that becomes read-only does so in its own mount namespace only, while a bind of a read-only one is so in all.
   */
  async bindPrepared(
    source: string,
    target: string,
    context: CallContext,
    prepare: (bind: string) => Promise<void>,
  ): Promise<void> {
    const { nfs, paths } = this.#deps;
    const helper = `${await this.folder()}/bind-${digest(target, 16)}`;
    await paths.makeFolder(helper, 0o700);
    try {
      await nfs.unmount(helper, context);
      await nfs.bind(source, helper, context);
      await prepare(helper);
      await nfs.bind(helper, target, context);
    } finally {
      await this.#removeQuietly(helper);
    }
  }

  /** Removes the helpers that a killed process has left. No call may be running. */
  async removeHelpers(): Promise<void> {
    const folder = await this.folder();
    const names = (await this.#deps.paths.list(folder)).filter((name) => helperForm.test(name));
    for (const name of names) await this.#removeQuietly(`${folder}/${name}`);
  }

  /** Unmounts every share that no volume uses. It never fails: the next call, or the next start, does it again. */
  async releaseUnused(context: CallContext): Promise<void> {
    try {
      const folder = await this.folder();
      for (const key of await this.#keys(folder)) await this.#releaseInTurn(`${folder}/${key}`, key, context);
    } catch (error) {
      this.#deps.notes.warn("cannot look for unused shares", { reason: messageOf(error) });
    }
  }

  /** The mount points of all shares that are mounted now. */
  async mounted(): Promise<readonly string[]> {
    const folder = await this.folder();
    const table = await this.#deps.nfs.table();
    const points = table.filter(isNfs).map(({ mountPoint }) => mountPoint);
    return [...new Set(points.filter((path) => isShareOf(path, folder)))];
  }

  /** The sources of all directories that are bound from the shares. */
  async sources(): Promise<ReadonlySet<string>> {
    const folder = await this.folder();
    const [mounted, table] = [await this.mounted(), await this.#deps.nfs.table()];
    return new Set(mounted.flatMap((path) => usersOf(table, path, folder)).map(({ source }) => source));
  }

  async #keys(folder: string): Promise<readonly string[]> {
    const mounted = (await this.mounted()).map((path) => path.slice(folder.length + 1));
    // A crash between making the folder and mounting leaves an empty one.
    const left = (await this.#deps.paths.list(folder)).filter((name) => keyForm.test(name));
    return [...new Set([...mounted, ...left])];
  }

  #semaphoreOf(key: string): Semaphore {
    const turn = this.#semaphores.get(key) ?? new Semaphore(1);
    this.#semaphores.set(key, turn);
    return turn;
  }

  async #ensure(share: NfsShare, mountPoint: string, context: CallContext): Promise<void> {
    const { nfs, paths } = this.#deps;
    if (mountsAt(await nfs.table(), mountPoint).length === 0) {
      await paths.makeFolder(mountPoint, 0o700);
      await nfs.mount(share, mountPoint, context);
    }
    const top = mountsAt(await nfs.table(), mountPoint).at(-1);
    if (top !== undefined && isNfs(top) && serverPath(top) === share.export) return;
    throw new VolumeError(
      "precondition",
      `Cannot use the share because something else is mounted in its place: path=${mountPoint} ` +
        `type=${top?.filesystem} source=${top?.source} export=${share.export}`,
    );
  }

  /** A call on the same share may be waiting for a dead server: it unmounts the share itself when it fails. */
  async #releaseInTurn(mountPoint: string, key: string, context: CallContext): Promise<void> {
    const { clock, nfs } = this.#deps;
    const folder = await this.folder();
    if (usersOf(await nfs.table(), mountPoint, folder).length > 0) return;
    const turn = this.#semaphoreOf(key);
    try {
      await withDeadline(clock, context, turnMs, "wait for the share", ({ signal }) => turn.acquire(signal));
    } catch (error) {
      if (!VolumeError.is(error)) throw error;
      return;
    }
    try {
      await this.#releaseQuietly(mountPoint);
    } finally {
      turn.release();
    }
  }

  /** The caller has the share's turn. */
  async #releaseQuietly(mountPoint: string): Promise<void> {
    const table = await this.#deps.nfs.table();
    if (usersOf(table, mountPoint, await this.folder()).length === 0) await this.#removeQuietly(mountPoint);
  }

  /** Unmounts one of the driver's own mounts and removes its folder. It goes on when the caller's call is over. */
  async #removeQuietly(mountPoint: string): Promise<void> {
    const { nfs, paths, notes } = this.#deps;
    const own = { requestId: "release", signal: new AbortController().signal };
    try {
      if (await nfs.unmount(mountPoint, own) === "detached") {
        notes.warn("a share was detached because its server does not answer", { path: mountPoint });
      }
      await paths.removeEmptyFolder(mountPoint);
    } catch (error) {
      notes.warn("cannot unmount an unused share", { path: mountPoint, reason: messageOf(error) });
    }
  }
}

function isShareOf(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`) && keyForm.test(path.slice(folder.length + 1));
}
