import { limitSignal } from "../async/deadline.ts";
import { type DeviceOpening, holdDevice, holdingDevice } from "../host/held_device.ts";
import type { KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import type { ToolResult } from "../host/spawn.ts";
import { VolumeError } from "../volume/errors.ts";
import type { DeviceUser } from "../volume/model/host/device_user.ts";
import type { FilesystemType } from "../volume/model/capabilities.ts";
import type { BlockDevices, DeviceNode, HiddenUsers, ProvenDevice } from "../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { partitionsOf } from "./contents.ts";
import { layersOn, loopsOn } from "./device_stack.ts";
import { HostProcesses } from "./host_processes.ts";

/** An open that takes longer waits for something that blocks the device. */
const openMs = 10_000;
/** A read that takes longer waits for a device that is away. */
const readMs = 2_000;
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
  readonly #opening: DeviceOpening;
  readonly #hostProcesses: HostProcesses;

  constructor(processes: Processes, files: KernelFiles, clock: Clock, procPath?: string) {
    this.#processes = processes;
    this.#files = files;
    this.#clock = clock;
    this.#opening = { files, clock };
    this.#hostProcesses = new HostProcesses(files, clock, procPath);
  }

  async setReadOnly(device: ProvenDevice, readOnly: boolean, context: CallContext): Promise<void> {
    if (this.#isReadOnly(device) === readOnly) return;
    const result = await this.#blockdev(readOnly ? "--setro" : "--setrw", device, context);
    const isReadOnly = this.#isReadOnly(device) ?? readOnly;
    if (result.code === 0 && isReadOnly === readOnly) return;
    throw new VolumeError(
      "unavailable",
      `Cannot set the device readonly=${readOnly}: device=${device.path} is readonly=${isReadOnly}: ` +
        complaint(result),
    );
  }

  async forgetReads(device: ProvenDevice, context: CallContext): Promise<void> {
    const result = await this.#blockdev("--flushbufs", device, context);
    if (result.code === 0) return;
    throw new VolumeError(
      "unavailable",
      `Cannot read the device anew: device=${device.path}: ${complaint(result)}`,
    );
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

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async partitions(device: DeviceNode): Promise<readonly DeviceNode[]> {
    return partitionsOf(this.#files, device);
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async layers(nodes: readonly DeviceNode[]): Promise<readonly DeviceUser[]> {
    return layersOn(this.#files, nodes);
  }

  async openBy(nodes: readonly DeviceNode[], context: CallContext): Promise<readonly DeviceUser[]> {
    return [...loopsOn(this.#files, nodes), ...await this.#hostProcesses.holding(nodes, context)];
  }

  async hiddenUsers(nodes: readonly DeviceNode[], context: CallContext): Promise<HiddenUsers> {
    const { users, mounted, hidden, searched } = await this.#hostProcesses.elsewhere(nodes, context);
    if (users.length > 0) return { users, searched };
    const superblocks = nodes.flatMap((node) => {
      const filesystem = mounted.has(node.deviceNumber) ? undefined : this.#filesystemOf(node);
      return filesystem === undefined
        ? []
        : [{ device: node.path, by: "superblock" as const, filesystem, hidden }];
    });
    return { users: superblocks, searched };
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
  async hasFilesystem(device: DeviceNode): Promise<boolean> {
    return this.#filesystemOf(device) !== undefined;
  }

  #filesystemOf({ path }: DeviceNode): FilesystemType | undefined {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const types: readonly FilesystemType[] = ["ext4", "xfs"];
    return types.find((type) => this.#files.list(`/sys/fs/${type}/${name}`) !== undefined);
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async filesystemErrors({ path }: DeviceNode): Promise<number | undefined> {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const text = this.#files.readText(`/sys/fs/ext4/${name}/errors_count`)?.trim() ?? "";
    return /^[0-9]{1,10}$/.test(text) ? Number(text) : undefined;
  }

  async refusesReads({ path }: DeviceNode, context: CallContext): Promise<boolean | undefined> {
    try {
      // A child: a read of a device whose target is silent would keep this process from ending.
      const result = await this.#processes.run("dd", {
        args: [`if=${path}`, "of=/dev/null", "bs=4096", "count=1", "iflag=direct", "status=none"],
        signal: context.signal,
        subject: path,
        timeoutMs: readMs,
      });
      if (result.code === 0) return false;
      return /error reading .*: Input\/output error/.test(result.stderr) ? true : undefined;
    } catch (error) {
      context.signal.throwIfAborted();
      if (VolumeError.is(error)) return undefined;
      throw error;
    }
  }

  async hold(device: DeviceNode, context: CallContext): Promise<() => Promise<void>> {
    return (await holdDevice(this.#opening, device, context)).release;
  }

  /** Runs blockdev on exactly this device. */
  async #blockdev(flag: string, device: DeviceNode, context: CallContext): Promise<ToolResult> {
    const options = { signal: context.signal, subject: device.path, timeoutMs: 10_000 };
    const run = (path: string) => this.#processes.run("blockdev", { args: [flag, path], ...options });
    return await holdingDevice(this.#opening, device, context, run);
  }
}
