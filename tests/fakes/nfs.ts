import { DirectoryNode } from "../../src/node/directory/directory_node.ts";
import type { DirectoryNodeDeps } from "../../src/node/directory/deps.ts";
import type { PublishDirectoryRequest } from "../../src/node/directory/publish.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { formatNfsAddresses } from "../../src/volume/model/directory/handle.ts";
import type { NfsMounts, UnmountOutcome } from "../../src/volume/ports/nfs_ports.ts";
import type { FilesystemStats, MountEntry } from "../../src/volume/ports/node_ports.ts";
import type { CallContext } from "../../src/volume/ports/system.ts";
import { FakeClock } from "./clock.ts";
import { fakeCall } from "./contexts.ts";
import { RecordedEvents } from "./node_events.ts";
import { FakePaths } from "./paths.ts";

/** A directory of the fake server. */
export interface FakeDirectory {
  mode: number;
  uid: number;
  gid: number;
  isEmpty: boolean;
  modifiedMs: number;
  changedMs: number;
}

export const sharesPath = "/state/mounts";

/** A node whose kernel is a mount table, and one NFS server with directories. Every operation is named and counted. */
export class FakeNfsNode {
  readonly clock = new FakeClock();
  readonly paths = new FakePaths();
  readonly events = new RecordedEvents();
  readonly notes: string[] = [];
  readonly operations: string[] = [];
  /** The server's directories, by their paths there. */
  readonly directories = new Map<string, FakeDirectory>();
  /** Links of the server: to a path of the server, or to one of the node (`node:/etc`). */
  readonly links = new Map<string, string>();
  /** Addresses that let no client mount. */
  readonly down = new Set<string>();
  /** Whether the server does not answer. */
  dead = false;
  /** Mount points that a process uses. */
  readonly busy = new Set<string>();
  /** Whether the server lets no client change owners and permissions. */
  squashes = false;
  obstacle: string | undefined;
  table: MountEntry[] = [];
  /** May throw, as if the process were killed there. */
  before: (operation: string, count: number) => void = () => {};
  service: DirectoryNode;
  #mountId = 100;
  #device = 40;

  constructor() {
    for (const path of ["/state", "/kubelet", "/kubelet/pods"]) {
      this.paths.nodes.set(path, { kind: "directory" });
    }
    this.paths.before = (operation, path) => {
      if (operation !== "info") this.#count(`${operation} ${path}`);
    };
    this.addDirectory("/pool");
    this.service = new DirectoryNode(this.deps());
  }

  /** Another process on the same kernel: nothing is left of the earlier one's memory. */
  restart(): void {
    this.service = new DirectoryNode(this.deps());
  }

  addDirectory(path: string, change: Partial<FakeDirectory> = {}): FakeDirectory {
    const made = { mode: 0o755, uid: 0, gid: 0, isEmpty: true, modifiedMs: 5000, changedMs: 5000, ...change };
    this.directories.set(path, made);
    return made;
  }

  async publish(
    name: string,
    change: Partial<PublishDirectoryRequest> = {},
  ): Promise<void> {
    await this.service.publish({
      volumeId: name,
      targetPath: targetOf(name),
      mode: "multi-node-multi-writer",
      mountFlags: [],
      readOnly: false,
      volumeContext: contextOf(name),
      ...change,
    }, this.call());
  }

  async unpublish(name: string, path = targetOf(name)): Promise<void> {
    await this.service.unpublish({ volumeId: name, path }, this.call());
  }

  call(): CallContext {
    return fakeCall(this.clock, 60_000);
  }

  /** The mounted shares' sources. */
  get shares(): readonly string[] {
    return this.table.filter(({ mountPoint }) => mountPoint.startsWith(`${sharesPath}/`)).map(({ source }) =>
      source
    );
  }

  at(mountPoint: string): MountEntry | undefined {
    return this.table.find((entry) => entry.mountPoint === mountPoint);
  }

  addMount(mountPoint: string, change: Partial<MountEntry>): void {
    this.table.push({
      mountId: this.#mountId++,
      parentId: 1,
      deviceNumber: "0:40",
      root: "/",
      mountPoint,
      mountOptions: ["rw", "relatime"],
      filesystem: "nfs4",
      source: "",
      superOptions: ["rw"],
      ...change,
    });
  }

  deps(): DirectoryNodeDeps {
    return {
      nfs: this.#nfs(),
      filesystems: { stats: (path, context) => this.#stats(path, context) },
      paths: this.paths,
      clock: this.clock,
      events: this.events,
      settings: { nodeId: "node-1", maxVolumesPerNode: 0, statePath: "/state" },
      notes: {
        info: (message) => void this.notes.push(message),
        warn: (message) => void this.notes.push(message),
      },
    };
  }

  #count(operation: string): void {
    this.operations.push(operation);
    this.before(operation, this.operations.length);
  }

  // deno-lint-ignore require-await -- a throw becomes a rejection, as it would in earnest
  async #do<T>(operation: string, action: () => T): Promise<T> {
    this.#count(operation);
    return action();
  }

  #nfs(): NfsMounts {
    return {
      obstacle: () => Promise.resolve(this.obstacle),
      table: () => Promise.resolve([...this.table]),
      mount: (share, target) =>
        this.#do("mount", () => {
          const address = share.addresses.find((one) => !this.down.has(one.host));
          if (this.dead || address === undefined) throw new VolumeError("unavailable", "Cannot mount");
          this.addMount(target, {
            deviceNumber: `0:${this.#device++}`,
            source: `${formatNfsAddresses([address])}:${share.export}`,
            superOptions: ["rw", ...share.options],
          });
        }),
      bind: (source, target) => this.#do("bind", () => this.#bind(source, target)),
      makeReadOnly: (target) =>
        this.#do("make read-only", () => {
          this.table = this.table.map((entry) =>
            entry.mountPoint === target ? { ...entry, mountOptions: ["ro", "relatime"] } : entry
          );
        }),
      flush: () => this.#do("flush", () => this.dead ? "silent" : "written"),
      unmount: async (target) => {
        if (this.at(target) === undefined) return "unmounted";
        return await this.#do(`unmount ${target}`, () => this.#unmount(target));
      },
      realPath: (path) => this.#do("real path", () => this.#realPath(path)),
      readFolder: (path) => {
        const { isEmpty, modifiedMs, changedMs } = this.#directoryAt(path);
        return Promise.resolve({ isEmpty, isUntouched: modifiedMs === changedMs, modifiedMs });
      },
      setModified: (path, modifiedMs) =>
        this.#do("set time", () => this.#change(path, { modifiedMs, changedMs: this.clock.now() })),
      setOwner: (path, { uid, gid }) =>
        this.#do("set owner", () => {
          const now = this.#directoryAt(path);
          this.#change(path, { uid: uid ?? now.uid, gid: gid ?? now.gid, changedMs: this.clock.now() });
        }),
      setMode: (path, mode) =>
        this.#do("set mode", () => this.#change(path, { mode, changedMs: this.clock.now() })),
    };
  }

  #stats(path: string, { signal }: CallContext): Promise<FilesystemStats> {
    if (this.dead) {
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    if (this.at(path) === undefined) throw new VolumeError("unavailable", `nothing at ${path}`);
    const [bytes, inodes] = [1000n, 10n];
    return Promise.resolve({
      totalBytes: bytes,
      availableBytes: 600n,
      usedBytes: 400n,
      totalInodes: inodes,
      freeInodes: 6n,
      usedInodes: 4n,
    });
  }

  #unmount(target: string): UnmountOutcome {
    if (this.busy.has(target) && !this.dead) throw new VolumeError("in-use", `${target} is busy`);
    this.table = this.table.filter((entry) => entry.mountPoint !== target);
    const isBelow = (path: string) => path.startsWith(`${target}/`);
    for (const path of [...this.paths.nodes.keys()].filter(isBelow)) this.paths.nodes.delete(path);
    return this.dead ? "detached" : "unmounted";
  }

  /** The mount that a path lies on. */
  #mountOf(path: string): MountEntry | undefined {
    return this.table.filter(({ mountPoint }) => path === mountPoint || path.startsWith(`${mountPoint}/`))
      .toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0];
  }

  #serverPathOf(path: string): string | undefined {
    const mount = this.#mountOf(path);
    if (mount === undefined) return undefined;
    const base = mount.source.slice(mount.source.indexOf(":/") + 1);
    return `${base === "/" ? "" : base}${path.slice(mount.mountPoint.length)}` || "/";
  }

  #realPath(path: string): string | undefined {
    const mount = this.#mountOf(path);
    const there = this.#serverPathOf(path);
    if (mount === undefined || there === undefined) return path;
    if (this.dead) throw new VolumeError("deadline", "the server does not answer");
    const link = this.links.get(there);
    if (link?.startsWith("node:") === true) return link.slice("node:".length);
    if (link !== undefined) return path.slice(0, path.length - there.length) + link;
    this.#show(path);
    return this.directories.has(there) ? path : undefined;
  }

  /** Lets the paths show what the server has. */
  #show(path: string): void {
    const there = this.#serverPathOf(path);
    const isThere = there !== undefined && this.directories.has(there);
    if (isThere) this.paths.nodes.set(path, { kind: "directory" });
  }

  /** Follows links, as the kernel does. */
  #bind(source: string, target: string): void {
    const there = this.#serverPathOf(source)!;
    const link = this.links.get(there);
    if (link?.startsWith("node:") === true) {
      return this.addMount(target, { deviceNumber: "8:1", filesystem: "ext4", source: "/dev/sda1" });
    }
    const mount = this.#mountOf(source)!;
    const server = mount.source.slice(0, mount.source.indexOf(":/"));
    this.addMount(target, { ...mount, mountPoint: target, source: `${server}:${link ?? there}` });
  }

  #directoryAt(path: string): FakeDirectory {
    return this.directories.get(this.#serverPathOf(path)!)!;
  }

  #change(path: string, change: Partial<FakeDirectory>): void {
    if (this.squashes) throw new VolumeError("precondition", "the server refuses");
    Object.assign(this.#directoryAt(path), change);
  }
}

/** The volume context of a directory below /pool/volumes. */
export function contextOf(name: string, change: Record<string, string> = {}): Record<string, string> {
  return { addresses: "10.0.0.1", export: "/pool", path: `/pool/volumes/${name}`, ...change };
}

export function targetOf(name: string): string {
  return `/kubelet/pods/${name}/mount`;
}
