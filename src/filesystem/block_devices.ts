import { endsWithin, limitSignal } from "../async/deadline.ts";
import type { KernelFiles, NodeInfo } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import type {
  BlockDevices,
  DeviceHolder,
  DeviceNode,
  MountEntry,
  ProvenDevice,
} from "../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { readMountTable } from "./mountinfo.ts";

/** Descriptors that are read before other work gets its turn: about a millisecond's worth. */
const descriptorsPerTurn = 200;

/** Where the processes of the whole host are visible: with `hostPID`, the usual path. */
const defaultProcPath = "/proc";

/** An open that takes longer waits for something that blocks the device. */
const openMs = 10_000;
const closeMs = 2_000;
/**
 * Another program may claim a device for a moment: one that only reads, one that sets up loop devices, or a container
 * that starts with copies of all mounts.
 */
const claimAttempts = 20;
const claimRetryMs = 100;

/** Block devices through blockdev(8), /proc and /sys. */
export class SystemBlockDevices implements BlockDevices {
  readonly #processes: Processes;
  readonly #files: KernelFiles;
  readonly #clock: Clock;
  readonly #procPath: string;

  constructor(processes: Processes, files: KernelFiles, clock: Clock, procPath = defaultProcPath) {
    this.#processes = processes;
    this.#files = files;
    this.#clock = clock;
    this.#procPath = procPath;
  }

  async setReadOnly(device: ProvenDevice, readOnly: boolean, context: CallContext): Promise<void> {
    if (this.#isReadOnly(device) === readOnly) return;
    const result = await this.#processes.run("blockdev", {
      args: [readOnly ? "--setro" : "--setrw", device.path],
      signal: context.signal,
      subject: device.path,
      timeoutMs: 10_000,
    });
    const isReadOnly = this.#isReadOnly(device) ?? readOnly;
    if (result.code === 0 && isReadOnly === readOnly) return;
    throw new VolumeError(
      "unavailable",
      `Cannot set the device readonly=${readOnly}: device=${device.path} is readonly=${isReadOnly}: ` +
        complaint(result),
    );
  }

  async forgetReads({ path }: ProvenDevice, context: CallContext): Promise<void> {
    const options = { args: ["--flushbufs", path], signal: context.signal, subject: path, timeoutMs: 10_000 };
    const result = await this.#processes.run("blockdev", options);
    if (result.code === 0) return;
    throw new VolumeError("unavailable", `Cannot read the device anew: device=${path}: ${complaint(result)}`);
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async isReadOnly(device: ProvenDevice): Promise<boolean | undefined> {
    return this.#isReadOnly(device);
  }

  /** The kernel's read-only flag; undefined where the kernel does not show it. */
  #isReadOnly(device: ProvenDevice): boolean | undefined {
    const flag = this.#files.readText(`/sys/dev/block/${device.deviceNumber}/ro`);
    return flag === undefined ? undefined : flag !== "0";
  }

  async holder(device: DeviceNode, context: CallContext): Promise<DeviceHolder | undefined> {
    const onTop = this.#loopOnTop(device);
    if (onTop?.certain) return onTop;
    return await this.#processHolding(device, context) ?? onTop;
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async layers(device: DeviceNode): Promise<readonly string[]> {
    const folder = `/sys/dev/block/${device.deviceNumber}`;
    const own = device.path.slice(device.path.lastIndexOf("/") + 1);
    const parts = (this.#files.list(folder) ?? []).filter((name) => name.startsWith(own));
    const folders = [folder, ...parts.map((part) => `${folder}/${part}`)];
    const names = folders.flatMap((each) => this.#files.list(`${each}/holders`) ?? []);
    return [...new Set(names)].toSorted().map((name) => this.#describeLayer(name));
  }

  /** Such as `/dev/dm-0 (vg-root, LVM)`, `/dev/md127 (raid)`. */
  #describeLayer(name: string): string {
    const read = (attribute: string) => this.#files.readText(`/sys/block/${name}/${attribute}`);
    const [mapped, uuid] = [read("dm/name"), read("dm/uuid")];
    const words = [mapped, uuid?.split("-")[0], read("md/level")].filter((word) =>
      word !== undefined && word !== ""
    );
    return words.length === 0 ? `/dev/${name}` : `/dev/${name} (${words.join(", ")})`;
  }

  async isUnclaimed(device: DeviceNode, context: CallContext): Promise<boolean> {
    using limited = limitSignal(this.#clock, context.signal, openMs);
    for (let attempt = 1;; attempt++) {
      if (await this.#files.canOpenExclusively(device.path, limited.signal)) return true;
      if (attempt === claimAttempts || limited.signal.aborted) return false;
      await this.#clock.sleep(claimRetryMs, context.signal);
    }
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async hasFilesystem({ path }: DeviceNode): Promise<boolean> {
    const name = path.slice(path.lastIndexOf("/") + 1);
    return ["ext4", "xfs"].some((type) => this.#files.list(`/sys/fs/${type}/${name}`) !== undefined);
  }

  async hold(device: DeviceNode, context: CallContext): Promise<() => Promise<void>> {
    using limited = limitSignal(this.#clock, context.signal, openMs);
    const held = await this.#files.hold(device.path, limited.signal);
    // The close of a dead device goes on in the background.
    const release = async () => void (held && await endsWithin(this.#clock, closeMs, held.release()));
    if (!context.signal.aborted && held?.deviceNumber === device.deviceNumber) return release;
    // Nobody else ever would: the caller gets an error.
    await release();
    context.signal.throwIfAborted();
    if (held === undefined) {
      throw new VolumeError("unavailable", `Cannot open the device: device=${device.path}`);
    }
    throw new VolumeError(
      "identity-mismatch",
      `Cannot use the device because its path leads to another device: device=${device.path} ` +
        `expected number=${device.deviceNumber} found number=${held.deviceNumber}`,
    );
  }

  /** The kubelet puts a loop device on top of a published block device; no process has a descriptor for it. */
  #loopOnTop(device: DeviceNode): DeviceHolder | undefined {
    const names = this.#files.list("/sys/block");
    if (names === undefined) {
      return { certain: false, description: "unknown, because /sys/block cannot be read" };
    }
    const table = readMountTable(this.#files);
    for (const name of names) {
      if (!name.startsWith("loop")) continue;
      const backing = this.#files.readText(`/sys/block/${name}/loop/backing_file`);
      if (backing === undefined) continue;
      const under = this.#deviceNode(backing.replace(/ \(deleted\)$/, ""), table);
      if (under?.kind !== "block" || under.deviceNumber !== device.deviceNumber) continue;
      return { certain: true, description: `/dev/${name} on top of it` };
    }
    return undefined;
  }

  /**
   * Reads what is at a path, if device nodes can be there. Other paths are not touched: the file of a loop device may
   * be on a server that is gone, and this process would wait for it.
   */
  #deviceNode(path: string, table: readonly MountEntry[]): NodeInfo | undefined {
    const around = table.filter(({ mountPoint }) =>
      path === mountPoint || path.startsWith(mountPoint === "/" ? "/" : `${mountPoint}/`)
    );
    // The longest mount point covers the others, and the last of several mounts is on top.
    const [deepest] = around.toReversed().toSorted((a, b) => b.mountPoint.length - a.mountPoint.length);
    const inMemory = deepest !== undefined && ["devtmpfs", "tmpfs"].includes(deepest.filesystem);
    return inMemory ? this.#files.info(path) : undefined;
  }

  /** The first process that certainly has it open, or else one that cannot be inspected. */
  async #processHolding(device: DeviceNode, context: CallContext): Promise<DeviceHolder | undefined> {
    const own = this.#files.readLink(`${this.#procPath}/self`);
    const pids = this.#files.list(this.#procPath);
    if (own === undefined || pids === undefined) {
      return { certain: false, description: `unknown, because ${this.#procPath} cannot be read` };
    }
    let suspect: DeviceHolder | undefined;
    // Other work gets its turn first, such as a tool that is to run meanwhile.
    let loaded = descriptorsPerTurn;
    for (const pid of pids) {
      if (!/^[0-9]+$/.test(pid) || pid === own) continue;
      if (loaded >= descriptorsPerTurn) {
        loaded = 0;
        await this.#clock.sleep(0, context.signal);
      }
      const descriptors = this.#readable(() => this.#files.list(`${this.#procPath}/${pid}/fd`) ?? []);
      const answer = descriptors === undefined ? "unreadable" : this.#heldBy(pid, descriptors, device);
      loaded += 1 + (descriptors?.length ?? 0);
      if (answer === "yes") return { certain: true, description: this.#describe(pid) };
      if (answer === "unreadable") {
        suspect ??= {
          certain: false,
          description: `perhaps ${this.#describe(pid)}, which cannot be looked into`,
        };
      }
    }
    return suspect;
  }

  #heldBy(pid: string, descriptors: readonly string[], device: DeviceNode): "yes" | "no" | "unreadable" {
    const answers = descriptors.map((name) => this.#leadsTo(`${this.#procPath}/${pid}/fd/${name}`, device));
    if (answers.includes(true)) return "yes";
    return answers.includes(undefined) ? "unreadable" : "no";
  }

  /**
   * The link text shows sockets, pipes and the like, so they are not read further. Undefined when the link cannot be
   * read.
   */
  #leadsTo(path: string, device: DeviceNode): boolean | undefined {
    return this.#readable(() => {
      if (this.#files.readLink(path)?.startsWith("/") !== true) return false;
      const info = this.#files.info(path);
      return info?.kind === "block" && info.deviceNumber === device.deviceNumber;
    });
  }

  #readable<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      if (VolumeError.is(error, "unavailable")) return undefined;
      throw error;
    }
  }

  #describe(pid: string): string {
    const name = this.#files.readText(`${this.#procPath}/${pid}/comm`) ?? "ended meanwhile";
    return `process ${pid} (${name})`;
  }
}
