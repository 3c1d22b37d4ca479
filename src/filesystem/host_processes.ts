import type { KernelFiles } from "../host/kernel_files.ts";
import { VolumeError } from "../volume/errors.ts";
import type { DeviceUser, HostProcess } from "../volume/model/host/device_user.ts";
import type { DeviceNode, HiddenUsers } from "../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { isCopy, parsePropagatedTable, type PropagatedTable } from "./mount_copies.ts";
import { parseMountinfo } from "./mountinfo.ts";

/** Where the processes of the whole host are visible: with `hostPID`, the usual path. */
const defaultProcPath = "/proc";

/** Descriptors that are read before other work gets its turn: about a millisecond's worth. */
const descriptorsPerTurn = 200;

/** More users of one device are not listed. */
const maxUsers = 8;

/** What the search through other mount namespaces has found. */
export interface ElsewhereSearch {
  /** Mounts in other mount namespaces, but for copies of the driver's own; and uses of files. */
  readonly users: readonly DeviceUser[];
  /** Numbers of the devices that are mounted in any mount table, the driver's own included. */
  readonly mounted: ReadonlySet<string>;
  /** Mount namespaces without a process in them, and processes that cannot be looked into. */
  readonly hidden: readonly string[];
  /** What was searched, for people. */
  readonly searched: string;
}

/** One walk through the processes. */
interface Walk {
  readonly numbers: ReadonlyMap<string, string>;
  /** The driver's own namespace and its table, which are read first. */
  own: { readonly namespace: string; readonly table: PropagatedTable } | undefined;
  /** By namespace: whether its mount table was read. */
  readonly namespaces: Map<string, boolean>;
  readonly tables: Set<string>;
  /** Namespaces that something keeps without being in them, and what it is. */
  readonly kept: Map<string, string>;
  readonly mounts: DeviceUser[];
  readonly filesOpen: DeviceUser[];
  readonly mounted: Set<string>;
  readonly unreadable: string[];
  /** Unmounts that wait in the kernel: what they unmount is in no table any more, and a mount of it would wait as well. */
  readonly unmounting: string[];
  processes: number;
}

/** What a process keeps, by its path in /proc, and what that leads to. */
interface KeptLink {
  readonly path: string;
  readonly link: string;
}

/** The processes of the host, as /proc shows them. */
export class HostProcesses {
  readonly #files: KernelFiles;
  readonly #clock: Clock;
  readonly #procPath: string;

  constructor(files: KernelFiles, clock: Clock, procPath = defaultProcPath) {
    this.#files = files;
    this.#clock = clock;
    this.#procPath = procPath;
  }

  /**
   * The processes that have one of the devices open, by whatever path. One that cannot be inspected may have it open or not;
   * there is nobody only if the result is empty.
   */
  async holding(nodes: readonly DeviceNode[], context: CallContext): Promise<readonly DeviceUser[]> {
    const numbers = pathsOf(nodes);
    const users: DeviceUser[] = [];
    const unseen: DeviceUser[] = [];
    const own = this.#files.readLink(`${this.#procPath}/self`);
    const isRead = own !== undefined && await this.#each(context, (pid) => {
      // A call keeps the device open itself.
      if (pid === own) return 0;
      const folder = `${this.#procPath}/${pid}/fd`;
      const names = this.#readable(() => this.#files.list(folder) ?? []);
      const found = names?.map((name) => this.#deviceAt(`${folder}/${name}`, numbers));
      const device = found?.find((each) => each !== undefined && each !== "unreadable");
      if (device !== undefined) users.push({ device, by: "process", process: this.#process(pid) });
      else if (found === undefined || found.includes("unreadable")) {
        const { name } = this.#process(pid);
        const what = `process ${pid} (${name}), which cannot be looked into`;
        if (unseen.length === 0) unseen.push({ device: nodes[0]!.path, by: "unseen", what });
      }
      return users.length < maxUsers ? 1 + (names?.length ?? 0) : "enough";
    });
    if (isRead) return users.length > 0 ? users : unseen;
    return [{ device: nodes[0]!.path, by: "unseen", what: `${this.#procPath} cannot be read` }];
  }

  /**
   * The processes that use a file of the file system at a mount point, which so cannot be unmounted. Those that use it by
   * another path, as other pods do, only where there is none that uses it by this one.
   */
  async usingFiles(
    node: DeviceNode,
    mountPoint: string,
    context: CallContext,
  ): Promise<HiddenUsers> {
    const numbers = pathsOf([node]);
    const [here, elsewhere]: [DeviceUser[], DeviceUser[]] = [[], []];
    let count = 0;
    const isRead = await this.#each(context, (pid) => {
      count++;
      const links = this.#linksOf(pid);
      const file = this.#fileOn(pid, links, numbers);
      if (file !== undefined) {
        const isHere = file.file === mountPoint || file.file.startsWith(`${mountPoint}/`);
        (isHere ? here : elsewhere).push({ ...file, by: "file", isMounted: true });
      }
      return here.length < maxUsers ? 1 + links.length : "enough";
    });
    const users = (here.length > 0 ? here : elsewhere).slice(0, maxUsers);
    const searched = isRead
      ? `the folders, programs and open files of ${count} processes`
      : `nothing, because ${this.#procPath} cannot be read`;
    return { users, searched };
  }

  /** Searches the mount namespaces of all processes, and their open files. It opens no device, and waits for none. */
  async elsewhere(nodes: readonly DeviceNode[], context: CallContext): Promise<ElsewhereSearch> {
    const walk: Walk = {
      numbers: pathsOf(nodes),
      own: undefined,
      namespaces: new Map(),
      tables: new Set(),
      kept: new Map(),
      mounts: [],
      filesOpen: [],
      mounted: new Set(),
      unreadable: [],
      unmounting: [],
      processes: 0,
    };
    this.#visitTable(walk, "self");
    const isRead = await this.#each(context, (pid) => {
      walk.processes++;
      if (this.#readable(() => this.#visitTable(walk, pid)) === undefined) walk.unreadable.push(pid);
      if (this.#isHangingUnmount(pid)) {
        walk.unmounting.push(`process ${pid} (umount), which waits in the kernel`);
      }
      return 1 + this.#visitFiles(walk, pid);
    });
    const isMounted = ({ device }: DeviceUser) =>
      nodes.some(({ path, deviceNumber }) => path === device && walk.mounted.has(deviceNumber));
    const hidden = [...walk.kept].filter(([namespace]) => walk.namespaces.get(namespace) !== true)
      .map(([namespace, where]) => `${namespace} at ${where}`);
    const unread = isRead ? walk.unreadable : ["*"];
    hidden.push(...walk.unmounting);
    if (unread.length > 0) hidden.push(`${unread.length} processes, such as ${this.#procPath}/${unread[0]}`);
    const users = [
      ...walk.mounts,
      ...walk.filesOpen.map((file) => ({ ...file, isMounted: isMounted(file) })),
    ];
    return {
      users: users.slice(0, maxUsers),
      mounted: walk.mounted,
      hidden,
      searched: `${walk.namespaces.size} mount namespaces and ${walk.processes} processes` +
        (unread.length === 0 ? "" : `, of which ${unread.length} cannot be looked into`),
    };
  }

  /** Reads the mount table of the process, unless its like was read. */
  #visitTable(walk: Walk, pid: string): true {
    const at = `${this.#procPath}/${pid}`;
    // Of a process that must not be traced only the table itself can be read.
    const link = this.#readable(() => ({ namespace: this.#files.readLink(`${at}/ns/mnt`) }));
    if (link !== undefined && link.namespace === undefined) return true;
    const namespace = link?.namespace ?? `that of process ${pid}`;
    // A process that has changed its root sees only what is below.
    const table = `${namespace} ${this.#readable(() => this.#files.readLink(`${at}/root`))}`;
    if (walk.tables.has(table)) return true;
    if (!walk.namespaces.has(namespace)) walk.namespaces.set(namespace, false);
    const text = this.#files.readText(`${at}/mountinfo`);
    if (text === undefined) return true;
    walk.tables.add(table);
    walk.namespaces.set(namespace, true);
    if (pid === "self") walk.own = { namespace, table: parsePropagatedTable(text) };
    let isNamed = namespace === walk.own?.namespace;
    for (const entry of parseMountinfo(linesWith(text, [...walk.numbers.keys()]))) {
      if (entry.filesystem === "nsfs") {
        if (entry.root.startsWith("mnt:[")) walk.kept.set(entry.root, entry.mountPoint);
        continue;
      }
      const device = walk.numbers.get(entry.deviceNumber);
      if (device === undefined) continue;
      walk.mounted.add(entry.deviceNumber);
      const isOwnCopy = () =>
        walk.own !== undefined && isCopy(walk.own.table, parsePropagatedTable(text), entry);
      if (isNamed || isOwnCopy()) continue;
      isNamed = true;
      walk.mounts.push({ device, by: "namespace", at: entry.mountPoint, process: this.#process(pid) });
    }
    return true;
  }

  /** Looks for files of the devices' file systems, and for mount namespaces, that the process keeps. */
  #visitFiles(walk: Walk, pid: string): number {
    const links = this.#linksOf(pid);
    for (const { path, link } of links) {
      if (link.startsWith("mnt:[") && !walk.kept.has(link)) walk.kept.set(link, path);
    }
    const file = this.#fileOn(pid, links, walk.numbers);
    if (file !== undefined) walk.filesOpen.push({ ...file, by: "file", isMounted: false });
    return links.length;
  }

  /**
   * What a process keeps, by its own paths in /proc: its folders, its program, and its descriptors. What it has mapped is not
   * read: that waits for a process which waits for its device.
   */
  #linksOf(pid: string): readonly KeptLink[] {
    const at = `${this.#procPath}/${pid}`;
    const names = this.#readable(() => this.#files.list(`${at}/fd`) ?? []) ?? [];
    const paths = [`${at}/cwd`, `${at}/root`, `${at}/exe`, ...names.map((name) => `${at}/fd/${name}`)];
    return paths.flatMap((path) => {
      const link = this.#readable(() => this.#files.readLink(path));
      return link === undefined ? [] : [{ path, link }];
    });
  }

  #fileOn(pid: string, links: readonly KeptLink[], numbers: ReadonlyMap<string, string>) {
    for (const { path, link } of links) {
      const number = link.startsWith("/")
        ? this.#readable(() => this.#files.info(path))?.filesystemNumber
        : undefined;
      const device = number === undefined ? undefined : numbers.get(number);
      if (device !== undefined) return { device, file: link, process: this.#process(pid) };
    }
    return undefined;
  }

  /**
   * Visits every process. Other work gets its turn first, such as a tool that is to run meanwhile.
   *
   * @param visit returns how many descriptors it has read, or that it has seen enough
   * @returns whether the processes could be listed
   */
  async #each(context: CallContext, visit: (pid: string) => number | "enough"): Promise<boolean> {
    const pids = this.#files.list(this.#procPath);
    if (pids === undefined) return false;
    let loaded = descriptorsPerTurn;
    for (const pid of pids) {
      if (!/^[0-9]+$/.test(pid)) continue;
      if (loaded >= descriptorsPerTurn) {
        loaded = 0;
        await this.#clock.sleep(0, context.signal);
      }
      const read = visit(pid);
      if (read === "enough") break;
      loaded += read;
    }
    return true;
  }

  /**
   * The link text shows sockets, pipes and the like, so they are not read further.
   *
   * @returns the device's path; undefined when it is another file
   */
  #deviceAt(path: string, numbers: ReadonlyMap<string, string>): string | "unreadable" | undefined {
    const read = () => {
      if (this.#files.readLink(path)?.startsWith("/") !== true) return {};
      const info = this.#files.info(path);
      return { device: info?.kind === "block" ? numbers.get(info.deviceNumber!) : undefined };
    };
    const answer = this.#readable<{ readonly device?: string | undefined }>(read);
    return answer === undefined ? "unreadable" : answer.device;
  }

  #isHangingUnmount(pid: string): boolean {
    const stat = this.#readable(() => this.#files.readText(`${this.#procPath}/${pid}/stat`)) ?? "";
    return /^[0-9]+ \(umount\) D /.test(stat);
  }

  #readable<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (VolumeError.is(error, "unavailable")) return undefined;
      throw error;
    }
  }

  #process(pid: string): HostProcess {
    const read = (name: string) =>
      this.#readable(() => this.#files.readText(`${this.#procPath}/${pid}/${name}`));
    return { pid: Number(pid), name: read("comm") ?? "ended meanwhile", pod: podOf(read("cgroup") ?? "") };
  }
}

/** The uid of a pod in the text of a cgroup, as the kubelet's drivers `systemd` and `cgroupfs` write it. */
function podOf(cgroup: string): string | undefined {
  const uid = /\bpod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})\b/.exec(cgroup)?.[1];
  return uid?.replaceAll("_", "-");
}

function pathsOf(nodes: readonly DeviceNode[]): ReadonlyMap<string, string> {
  return new Map(nodes.map(({ deviceNumber, path }) => [deviceNumber, path]));
}

/** The lines of a mount table that may be of interest: a node has many tables, and parsing costs more than searching. */
function linesWith(text: string, numbers: readonly string[]): string {
  return text.split("\n").filter((line) =>
    line.includes(" - nsfs ") || numbers.some((number) => line.includes(` ${number} `))
  ).join("\n");
}
