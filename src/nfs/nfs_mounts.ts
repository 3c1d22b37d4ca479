import { withDeadline } from "../async/deadline.ts";
import type { KernelFiles } from "../host/kernel_files.ts";
import { complaint, type Processes } from "../host/processes.ts";
import type { ToolResult } from "../host/spawn.ts";
import type { TimedFiles } from "../host/timed_files.ts";
import { VolumeError } from "../volume/errors.ts";
import { type NfsAddress } from "../volume/model/directory/handle.ts";
import type {
  FlushOutcome,
  FolderState,
  NfsMounts,
  NfsShare,
  UnmountOutcome,
} from "../volume/ports/nfs_ports.ts";
import type { Filesystems, MountEntry, Mounts } from "../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import { mountsAt } from "../volume/rules/host/mounts_at.ts";
import type { ClientIdentifier } from "./client_identifier.ts";
import * as folders from "./folders.ts";

/** How long one address may take to mount: a dead one would take minutes. */
const mountMs = 20_000;
/** How long a bind, or the resolving of a path, may take. */
const pathMs = 10_000;
/** How long the kernel may take to write what it still holds. */
const flushMs = 30_000;
/** How long an unmount may take: all has been written before. */
const unmountMs = 15_000;
/** How long a server may take to answer before it counts as dead. */
const answerMs = 5_000;

/** The options of a mount itself, which a remount has to repeat (mount_setattr(2)). */
const keptFlags: ReadonlySet<string> = new Set(
  "nosuid nodev noexec noatime nodiratime relatime nosymfollow".split(" "),
);

/** Options of {@linkcode SystemNfsMounts}. */
export interface NfsMountsOptions {
  readonly processes: Processes;
  readonly files: KernelFiles;
  readonly clock: Clock;
  readonly mounts: Pick<Mounts, "table" | "whoKeeps">;
  readonly filesystems: Pick<Filesystems, "stats">;
  readonly timedFiles: TimedFiles;
  readonly identifier: ClientIdentifier;
}

/**
 * Mounts with mount.nfs4(8), mount(8) and umount(8). Whatever touches a share runs in a child process, or on one of a
 * few threads, and has a deadline: a server that does not answer holds up neither this process nor other servers.
 */
export class SystemNfsMounts implements NfsMounts {
  readonly #options: NfsMountsOptions;
  /** Flushes that have not ended, by path. */
  readonly #flushes = new Map<string, Promise<ToolResult>>();

  constructor(options: NfsMountsOptions) {
    this.#options = options;
  }

  async obstacle(context: CallContext): Promise<string | undefined> {
    const { files } = this.#options;
    if (isInOtherNetwork(files)) {
      return "this process is not in the node's network (hostNetwork): its mounts would end with its pod";
    }
    if (!hasNfs(files)) await this.#loadModule(context);
    if (hasNfs(files)) return undefined;
    return "the kernel has no NFSv4 client: load the module nfsv4 (modprobe nfsv4), or use a kernel that has it";
  }

  async table(): Promise<readonly MountEntry[]> {
    return await this.#options.mounts.table();
  }

  async mount(share: NfsShare, target: string, context: CallContext): Promise<void> {
    if (!hasNfs(this.#options.files)) await this.#loadModule(context);
    this.#options.identifier.ensure(await this.table());
    const failures: string[] = [];
    for (const address of share.addresses) {
      const failure = await this.#mountFrom(address, share, target, context);
      if (failure === undefined) return;
      failures.push(`${written(address)}: ${failure}`);
    }
    throw new VolumeError(
      "unavailable",
      "Cannot mount the share because no address of its server lets it: " +
        `export=${share.export} ${failures.join(" | ")}`,
    );
  }

  async bind(source: string, target: string, context: CallContext): Promise<void> {
    // Without canonicalising, which would read the share before the kernel does.
    await this.#mustMount(["-c", "--bind", "--", source, target], target, context);
  }

  async makeReadOnly(target: string, context: CallContext): Promise<void> {
    const top = mountsAt(await this.table(), target).at(-1);
    const kept = top?.mountOptions.filter((option) => keptFlags.has(option)) ?? [];
    const text = ["remount", "bind", "ro", ...kept].join(",");
    await this.#mustMount(["-c", "-o", text, "--", target], target, context);
  }

  async flush(path: string, context: CallContext): Promise<FlushOutcome> {
    if (!await this.#answers(path, context)) return "silent";
    const { clock } = this.#options;
    try {
      const { code } = await withDeadline(clock, context, flushMs, "flush", () => this.#sync(path));
      return code === 0 ? "written" : "failed";
    } catch (error) {
      context.signal.throwIfAborted();
      if (!VolumeError.is(error, "deadline") && !VolumeError.is(error, "unavailable")) throw error;
      if (!await this.#answers(path, context)) return "silent";
      throw new VolumeError(
        "unavailable",
        `Cannot unmount ${path} because the kernel still writes to its server: try again`,
        { cause: error },
      );
    }
  }

  async unmount(target: string, context: CallContext): Promise<UnmountOutcome> {
    let outcome: UnmountOutcome = "unmounted";
    for (let left = await this.#countAt(target); left > 0;) {
      if (await this.#unmountOne(target, left, context) === "detached") outcome = "detached";
      const now = await this.#countAt(target);
      if (now >= left) {
        throw new VolumeError(
          "unavailable",
          `Cannot unmount ${target} because it is still in the mount table`,
        );
      }
      left = now;
    }
    return outcome;
  }

  async realPath(path: string, context: CallContext): Promise<string | undefined> {
    const result = await this.#options.processes.run("realpath", {
      args: ["--canonicalize-existing", "--zero", "--", path],
      signal: context.signal,
      subject: path,
      timeoutMs: pathMs,
    });
    if (result.code === 0) return result.stdout.replace(/\0$/, "");
    if (/: (?:No such file or directory|Not a directory)$/m.test(result.stderr)) return undefined;
    throw new VolumeError("unavailable", `Cannot determine where ${path} leads to: ${complaint(result)}`);
  }

  async readFolder(path: string, context: CallContext): Promise<FolderState> {
    const { processes, timedFiles } = this.#options;
    const isEmpty = await timedFiles.run(path, () => folders.isEmptyFolder(path));
    // The runtime reads one of the two times in whole seconds only.
    const run = {
      args: ["-c", "%.9Y %.9Z", "--", path],
      signal: context.signal,
      subject: path,
      timeoutMs: pathMs,
    };
    const result = await processes.run("stat", run);
    const [, modified, changed] = /^([0-9.-]+) ([0-9.-]+)\n$/.exec(result.stdout) ?? [];
    if (modified === undefined) {
      throw new VolumeError("unavailable", `Cannot look at ${path}: ${complaint(result)}`);
    }
    return { isEmpty, isUntouched: modified === changed, modifiedMs: Math.floor(Number(modified) * 1000) };
  }

  async setModified(path: string, modifiedMs: number): Promise<void> {
    await this.#options.timedFiles.run(path, () => folders.setModified(path, modifiedMs));
  }

  async setOwner(path: string, { uid, gid }: { uid?: number; gid?: number }): Promise<void> {
    await this.#options.timedFiles.run(path, () => folders.setOwner(path, uid, gid));
  }

  async setMode(path: string, mode: number): Promise<void> {
    await this.#options.timedFiles.run(path, () => folders.setMode(path, mode));
  }

  /** Returns why the address did not let it; undefined when it did. */
  async #mountFrom(
    address: NfsAddress,
    share: NfsShare,
    target: string,
    context: CallContext,
  ): Promise<string | undefined> {
    const first = await this.#tryMount(address, share, share.options, target, context);
    const mayNeedPort = share.options.includes("noresvport") &&
      /Operation not permitted|access denied/.test(first ?? "");
    if (!mayNeedPort) return first;
    // An export may take only connections from ports below 1024 (`secure`, the default of Linux's server).
    const reserved = share.options.filter((option) => option !== "noresvport");
    return await this.#tryMount(address, share, reserved, target, context);
  }

  async #tryMount(
    address: NfsAddress,
    share: NfsShare,
    options: readonly string[],
    target: string,
    context: CallContext,
  ): Promise<string | undefined> {
    context.signal.throwIfAborted();
    // The kernel's own helper is run directly: mount(8) would start it as a child that survives it.
    const text = ["retry=0", `port=${address.port}`, ...options].join(",");
    const host = address.host.includes(":") ? `[${address.host}]` : address.host;
    const args = [`${host}:${share.export}`, target, "-n", "-o", text];
    // A helper that hangs at one address must not keep the next one from being tried.
    const subject = `${target} from ${written(address)}`;
    const run = { args, signal: context.signal, subject, timeoutMs: mountMs };
    try {
      const result = await this.#options.processes.run("mount.nfs4", run);
      return result.code === 0 ? undefined : complaint(result);
    } catch (error) {
      // A helper that was killed may have mounted at the last moment.
      if (await this.#countAt(target) > 0) return undefined;
      context.signal.throwIfAborted();
      if (!VolumeError.is(error, "deadline") && !VolumeError.is(error, "unavailable")) throw error;
      return error.message;
    }
  }

  /**
   * One that takes long goes on, and the next call waits for the same one. It writes what there was at its beginning; a
   * new one would have to write what other pods have written to the share meanwhile, and might never end in time.
   */
  #sync(path: string): Promise<ToolResult> {
    const earlier = this.#flushes.get(path);
    if (earlier !== undefined) return earlier;
    const args = ["--file-system", "--", path];
    const { signal } = new AbortController();
    const run = this.#options.processes.run("sync", { args, signal, subject: path, mustFinish: true })
      .finally(() => this.#flushes.delete(path));
    run.catch(() => {}); // Its caller may have gone.
    this.#flushes.set(path, run);
    return run;
  }

  async #unmountOne(target: string, left: number, context: CallContext): Promise<UnmountOutcome> {
    const result = await this.#umount([], target, context);
    if (result?.code === 0) return "unmounted";
    // The kernel takes a mount out of the table first, and waits for its server after that.
    if (await this.#countAt(target) < left) return "detached";
    if (result !== undefined && await this.#answers(target, context)) {
      if (/busy/.test(result.stderr)) throw await this.#options.mounts.whoKeeps(target, context);
      throw new VolumeError("unavailable", `Cannot unmount ${target}: ${complaint(result)}`);
    }
    await this.#umount(["--lazy"], target, context);
    return "detached";
  }

  /**
   * Returns undefined when it takes too long. It is not killed then: it writes what pods have written, and a server
   * that is only slow must get all of it.
   */
  async #umount(
    flags: readonly string[],
    target: string,
    context: CallContext,
  ): Promise<ToolResult | undefined> {
    const { clock, processes } = this.#options;
    // Without canonicalising, which would read the share, and without a helper, which may ask the server.
    const args = ["-n", "-c", "-i", ...flags, "--", target];
    try {
      return await withDeadline(
        clock,
        context,
        unmountMs,
        "unmount",
        ({ signal }) => processes.run("umount", { args, signal, subject: target, mustFinish: true }),
      );
    } catch (error) {
      context.signal.throwIfAborted();
      if (!VolumeError.is(error, "deadline")) throw error;
      return undefined;
    }
  }

  async #answers(target: string, context: CallContext): Promise<boolean> {
    const { clock, filesystems } = this.#options;
    try {
      await withDeadline(clock, context, answerMs, "get an answer", (on) => filesystems.stats(target, on));
      return true;
    } catch (error) {
      context.signal.throwIfAborted();
      if (VolumeError.is(error, "unavailable") || VolumeError.is(error, "deadline")) return false;
      throw error;
    }
  }

  async #countAt(target: string): Promise<number> {
    return mountsAt(await this.table(), target).length;
  }

  async #mustMount(args: readonly string[], target: string, context: CallContext): Promise<void> {
    const run = { args: ["-n", ...args], signal: context.signal, subject: target, timeoutMs: pathMs };
    const result = await this.#options.processes.run("mount", run);
    if (result.code === 0) return;
    throw new VolumeError("precondition", `Cannot mount at ${target}: ${complaint(result)}`);
  }

  /** The kernel loads the file system's module when it is asked to mount one, even in a way that is always refused. */
  async #loadModule(context: CallContext): Promise<void> {
    await this.#options.processes.run("mount", {
      args: ["-n", "-i", "-t", "nfs4", "--", "none", "/proc"],
      signal: context.signal,
      subject: "the module of NFS",
      timeoutMs: pathMs,
    });
  }
}

function hasNfs(files: KernelFiles): boolean {
  return /^(?:nodev)?\s*nfs4$/m.test(files.readText("/proc/filesystems") ?? "");
}

/** Whether the host's first process is visible, and in another network. A mount belongs to the network of its maker. */
function isInOtherNetwork(files: KernelFiles): boolean {
  try {
    const [own, host] = ["self", "1"].map((pid) => files.readLink(`/proc/${pid}/ns/net`));
    return own !== undefined && host !== undefined && own !== host;
  } catch (error) {
    if (!VolumeError.is(error, "unavailable")) throw error;
    return false;
  }
}

function written({ host, port }: NfsAddress): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
