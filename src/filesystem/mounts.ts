import type { KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import { VolumeError } from "../volume/errors.ts";
import { type DeviceUser, inUse, isInUse } from "../volume/model/host/device_user.ts";
import { mountsAt } from "../volume/rules/host/mounts_at.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { lookAdvice } from "./repair_advice.ts";
import type { FilesystemType } from "../volume/model/capabilities.ts";
import type { MountEntry, MountOptions, Mounts, Paths, ProvenDevice } from "../volume/ports/node_ports.ts";
import { keepersOfMount } from "./device_stack.ts";
import { HostProcesses } from "./host_processes.ts";
import { readMountTable } from "./mountinfo.ts";

/** The options that keep each file system from writing to the device: replaying a log is writing too. */
const readOnlyOptions: Readonly<Record<FilesystemType, readonly string[]>> = {
  ext4: ["ro", "noload"],
  xfs: ["ro", "norecovery"],
};

/** A clone of a mounted xfs has the same uuid, and the kernel would refuse it. */
const alwaysOptions: Readonly<Record<FilesystemType, readonly string[]>> = { ext4: [], xfs: ["nouuid"] };

/**
 * Without it the superblock decides. Its default is to go on writing to a damaged file system, and it may be set to
 * panic: newer kernels then panic also for an error of a read-only mount.
 */
const onErrors: Readonly<Record<FilesystemType, readonly string[]>> = {
  ext4: ["errors=remount-ro"],
  xfs: [],
};

/** The options of a mount itself, which a remount has to repeat (mount_setattr(2)). */
const mountFlags: ReadonlySet<string> = new Set([
  "nosuid",
  "nodev",
  "noexec",
  "noatime",
  "nodiratime",
  "relatime",
  "nosymfollow",
]);

/** A thaw takes no time, or waits for a device that is gone. */
const thawMs = 5_000;
/** How often a file system may be frozen on top of itself; a thaw ends one freeze. */
const maxThaws = 8;

/** The kernel refuses an option that it does not know with the words that it has for damage. Values may be sensitive. */
function optionAdvice(flags: readonly string[]): string {
  if (flags.length === 0) return "";
  const names = flags.map((flag) => flag.split("=")[0]).join(",");
  return `; check the mount options of its PersistentVolume first, of which one may be mistyped: ${names}`;
}

/** Mounts with mount(8) and umount(8), each verified in mountinfo. */
export class SystemMounts implements Mounts {
  readonly #processes: Processes;
  readonly #files: KernelFiles;
  readonly #paths: Pick<Paths, "info">;
  readonly #hostProcesses: HostProcesses;

  constructor(processes: Processes, files: KernelFiles, paths: Pick<Paths, "info">, clock: Clock) {
    this.#hostProcesses = new HostProcesses(files, clock);
    this.#processes = processes;
    this.#files = files;
    this.#paths = paths;
  }

  // deno-lint-ignore require-await -- a throw of the reading becomes a rejection
  async table(): Promise<readonly MountEntry[]> {
    return readMountTable(this.#files);
  }

  async mountDevice(
    device: ProvenDevice,
    target: string,
    filesystem: FilesystemType,
    options: MountOptions,
    context: CallContext,
  ): Promise<void> {
    const before = this.#at(target).length;
    const saysOnErrors = options.flags.some((flag) => flag.startsWith("errors="));
    const mountOptions = [
      ...(options.readOnly ? options.replay ? ["ro"] : readOnlyOptions[filesystem] : ["rw"]),
      ...(saysOnErrors ? [] : onErrors[filesystem]),
      ...alwaysOptions[filesystem],
      ...options.flags,
    ];
    // The name: mount(8) would turn the path of a descriptor into it. If this process is killed and another device gets the name
    // before the mount, no call ends well, and the next one refuses what is mounted there.
    await this.#mount(
      ["-t", filesystem, "-o", mountOptions.join(","), "--", device.path, target],
      device.path,
      context,
      `${optionAdvice(options.flags)}; to look at it: ${lookAdvice(filesystem)}`,
    );
    const entries = this.#at(target);
    const top = entries.at(-1);
    const right = entries.length === before + 1 && top?.deviceNumber === device.deviceNumber &&
      top.filesystem === filesystem && top.superOptions.includes("ro") === options.readOnly;
    if (!right) {
      await this.#takeBack(target, before, `device=${device.deviceNumber} type=${filesystem}`, context);
    }
  }

  async bindFolder(
    device: ProvenDevice,
    source: string,
    target: string,
    options: { readonly readOnly: boolean },
    context: CallContext,
  ): Promise<void> {
    const before = await this.#bind(source, target, options.readOnly, context);
    const top = await this.#theOne(target, context);
    const right = top.deviceNumber === device.deviceNumber && top.root === "/";
    if (!right) await this.#takeBack(target, before, `device=${device.deviceNumber}`, context);
  }

  async bindDevice(
    device: ProvenDevice,
    target: string,
    options: { readonly readOnly: boolean },
    context: CallContext,
  ): Promise<void> {
    const before = await this.#bind(device.path, target, options.readOnly, context);
    await this.#theOne(target, context);
    const bound = await this.#paths.info(target, context);
    const right = bound?.kind === "block" && bound.deviceNumber === device.deviceNumber;
    if (!right) await this.#takeBack(target, before, `device=${device.deviceNumber}`, context);
  }

  async thaw(mountPoint: string, context: CallContext): Promise<boolean> {
    for (let thawed = 0; thawed < maxThaws; thawed++) {
      const result = await this.#processes.run("fsfreeze", {
        args: ["--unfreeze", mountPoint],
        signal: context.signal,
        // It may wait in the kernel, and the unmount must not wait for it.
        subject: `the freeze of ${mountPoint}`,
        timeoutMs: thawMs,
      });
      // FITHAW of a file system that is not frozen ends with EINVAL. One may be frozen several times.
      if (result.code !== 0 && result.stderr.includes("Invalid argument")) return thawed > 0;
      if (result.code !== 0) {
        throw new VolumeError(
          "unavailable",
          `Cannot thaw the file system at ${mountPoint}: ${complaint(result)}`,
        );
      }
    }
    throw new VolumeError(
      "unavailable",
      `Cannot thaw the file system at ${mountPoint}: it is frozen again and again`,
    );
  }

  async unmount(target: string, context: CallContext): Promise<void> {
    await this.#unmountTo(target, 0, context);
  }

  async whoKeeps(target: string, context: CallContext): Promise<VolumeError> {
    const table = readMountTable(this.#files);
    const entry = mountsAt(table, target).at(-1);
    if (entry === undefined) {
      return new VolumeError("unavailable", `Cannot unmount ${target}: it has gone meanwhile`);
    }
    const { deviceNumber, source, filesystem } = entry;
    const bound = ["devtmpfs", "tmpfs"].includes(filesystem)
      ? await this.#paths.info(target, context)
      : undefined;
    const node = { path: source, deviceNumber };
    const refused = (users: readonly [DeviceUser, ...DeviceUser[]]) =>
      inUse(users, (words) => `Cannot unmount ${target} because ${words}`);
    const keepers = keepersOfMount(this.#files, table, entry);
    if (isInUse(keepers)) return refused(keepers);
    const { users, searched } = bound?.deviceNumber === undefined
      ? await this.#hostProcesses.usingFiles(node, target, context)
      : {
        users: await this.#hostProcesses.holding(
          [{ path: target, deviceNumber: bound.deviceNumber }],
          context,
        ),
        searched: "the descriptors of all processes",
      };
    if (isInUse(users)) return refused(users);
    return new VolumeError(
      "in-use",
      `Cannot unmount ${target} because it is in use, and its user was not found; searched: ${searched}`,
    );
  }

  #at(target: string): readonly MountEntry[] {
    return mountsAt(readMountTable(this.#files), target);
  }

  /** Binds if nothing is mounted yet; returns how many mounts existed before. */
  async #bind(source: string, target: string, readOnly: boolean, context: CallContext): Promise<number> {
    const before = this.#at(target).length;
    if (before === 0) await this.#mount(["--bind", "--", source, target], target, context);
    const top = this.#at(target).at(-1);
    if (!readOnly || top === undefined || top.mountOptions.includes("ro")) return before;
    const kept = top.mountOptions.filter((option) => mountFlags.has(option));
    const text = ["remount", "bind", "ro", ...kept];
    await this.#mount(["-o", text.join(","), "--", target], target, context);
    if (this.#at(target).at(-1)?.mountOptions.includes("ro") !== true) {
      await this.#takeBack(target, before, "readonly=true", context);
    }
    return before;
  }

  /**
   * Returns the only mount at the target. Where /dev is a shared mount, one bind can appear many times; the copies are
   * unmounted.
   */
  async #theOne(target: string, context: CallContext): Promise<MountEntry> {
    if (this.#at(target).length > 1) await this.#unmountTo(target, 1, context);
    const [entry] = this.#at(target);
    if (entry !== undefined) return entry;
    throw new VolumeError("unavailable", `Cannot find the mount that was just made: target=${target}`);
  }

  async #mount(
    args: readonly string[],
    subject: string,
    context: CallContext,
    advice = "",
  ): Promise<void> {
    const options = { args: ["-n", ...args], signal: context.signal, subject, mustFinish: true };
    const result = await this.#processes.run("mount", options);
    if (result.code === 0) return;
    throw new VolumeError("precondition", `Cannot mount at ${args.at(-1)}: ${complaint(result)}${advice}`);
  }

  /** Unmounts what this call mounted, and throws. */
  async #takeBack(target: string, keep: number, wanted: string, context: CallContext): Promise<never> {
    const found = this.#at(target).at(-1);
    await this.#unmountTo(target, keep, context);
    throw new VolumeError(
      "identity-mismatch",
      `Cannot use the mount because it differs from the request: target=${target} ${wanted}; found ` +
        `device=${found?.deviceNumber} type=${found?.filesystem} options=${found?.mountOptions.join(",")}`,
    );
  }

  /** Unmounts from the top until `keep` mounts are left. */
  async #unmountTo(target: string, keep: number, context: CallContext): Promise<void> {
    for (let count = this.#at(target).length; count > keep;) {
      const result = await this.#processes.run("umount", {
        // Without canonicalising, which would read a device that may be dead.
        args: ["-n", "-c", "--", target],
        signal: context.signal,
        subject: target,
      });
      const left = this.#at(target).length;
      if (left >= count) {
        if (/busy/.test(result.stderr)) throw await this.whoKeeps(target, context);
        throw new VolumeError("unavailable", `Cannot unmount ${target}: ${complaint(result)}`);
      }
      count = left;
    }
  }
}
