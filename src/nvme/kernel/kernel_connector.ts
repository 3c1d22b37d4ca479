import { limitSignal, timeLeftMs } from "../../async/deadline.ts";
import { poll } from "../../async/poll.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { complaint, type Processes } from "../../host/processes.ts";
import type { SysfsWriter } from "../../host/sysfs_writer.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { HostIdentity } from "../../volume/model/host/identity.ts";
import type {
  BlockDevices,
  Connection,
  Connector,
  FoundDevice,
  MissingPath,
  Mounts,
  Paths,
  Target,
} from "../../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import type { TargetAddress } from "../address.ts";
import { discover } from "../discover.ts";
import type { Resolve } from "./addresses.ts";
import { AskedTargets } from "./asked_targets.ts";
import { ConnectAttempt } from "./connect_attempt.ts";
import { ConnectTurns } from "./connect_turns.ts";
import { NvmeTool } from "./nvme_tool.ts";
import { missingFabrics, missingTransport, transportAdvice } from "./refused_connect.ts";
import {
  isGone,
  readAllDevices,
  readControllers,
  readControllersOf,
  readDevice,
  readDevices,
  readLiveNqns,
  readNqns,
} from "./sysfs.ts";

/** Receives warnings. */
export interface Notes {
  warn(message: string, fields: Readonly<Record<string, unknown>>): void;
}

/** Options of {@linkcode KernelConnector}. */
export interface KernelConnectorOptions {
  readonly files: KernelFiles;
  readonly processes: Processes;
  readonly attributes: SysfsWriter;
  /** Checked before a connection of another program is replaced. */
  readonly devices: BlockDevices;
  readonly mounts: Mounts;
  readonly paths: Pick<Paths, "info">;
  readonly resolve: Resolve;
  readonly clock: Clock;
  readonly notes: Notes;
  /** The identity under which every target sees this node. */
  readonly host: HostIdentity;
  /** The prefix of the NQNs of this driver's subsystems, without the colon after it: no other subsystem is touched. */
  readonly nqnPrefix: string;
  /** @default {discover} */
  readonly discover?: typeof discover;
}

/** A flush that takes longer waits for a target that is away. */
const flushMs = 10_000;

/** Reaches volumes through the kernel's NVMe/TCP initiator. */
export class KernelConnector implements Connector {
  readonly name = "nvme-tcp";
  /** The kernel removes a device even while a process has it open. */
  readonly sparesOpenDevices = false;
  readonly host: HostIdentity;
  readonly #options: KernelConnectorOptions;
  readonly #tool: NvmeTool;
  readonly #asked: AskedTargets;
  readonly #turns: ConnectTurns;

  constructor(options: KernelConnectorOptions) {
    this.#options = options;
    this.host = options.host;
    this.#tool = new NvmeTool(options);
    this.#asked = new AskedTargets({ discover, ...options });
    this.#turns = new ConnectTurns(options.clock);
  }

  async obstacle(context: CallContext): Promise<string | undefined> {
    const { files } = this.#options;
    if (missingTransport(files) !== undefined && missingFabrics(files) === undefined) {
      const { signal } = context;
      await this.#turns.run("", { signal }, (leave) => this.#tool.loadTransport(signal, leave));
    }
    const missing = missingTransport(files);
    return missing && `${missing}; ${transportAdvice}`;
  }

  async connect(target: Target, context: CallContext): Promise<readonly MissingPath[]> {
    return await this.#attempt(target, context).run();
  }

  async addPaths(target: Target, context: CallContext): Promise<readonly MissingPath[]> {
    return await this.#attempt(target, context).addMissing();
  }

  #attempt(target: Target, context: CallContext): ConnectAttempt {
    this.#assertOwn("connect", target.nqn);
    const own = { tool: this.#tool, asked: this.#asked, turns: this.#turns };
    const removeUnused = () => this.#remove(target.nqn, context);
    return new ConnectAttempt({ ...this.#options, ...own, removeUnused }, target, context);
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async find(nqn: string): Promise<FoundDevice | undefined> {
    return readDevice(this.#options.files, nqn);
  }

  async rescan(nqn: string, context: CallContext): Promise<void> {
    const live = readControllers(this.#options.files, nqn).filter(({ state }) => state === "live");
    if (live.length === 0) throw this.#notLive("rescan", nqn);
    const results = await Promise.all(live.map(({ name }) => this.#tool.rescan(name, context)));
    const failed = results.find(({ code }) => code !== 0);
    if (failed === undefined || results.some(({ code }) => code === 0)) return;
    throw new VolumeError("unavailable", `Cannot rescan the subsystem: nqn=${nqn}: ${complaint(failed)}`);
  }

  async disconnect(nqn: string, context: CallContext): Promise<void> {
    // A volume that was staged before the prefix changed is named by another one.
    if (isGone(this.#options.files, nqn)) return;
    this.#assertOwn("disconnect", nqn);
    await this.#flush(nqn, context);
    await this.#remove(nqn, context);
  }

  async forceDisconnect(nqn: string, context: CallContext): Promise<void> {
    if (isGone(this.#options.files, nqn)) return;
    this.#assertOwn("cut off", nqn);
    await this.#remove(nqn, context);
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async connections(nqn: string): Promise<readonly Connection[]> {
    return readControllers(this.#options.files, nqn);
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async allConnections(): Promise<ReadonlyMap<string, readonly Connection[]>> {
    const own = readControllersOf(this.#options.files, (nqn) => this.#isOwn(nqn));
    return Map.groupBy(own, ({ nqn }) => nqn);
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async allDevices(): Promise<ReadonlyMap<string, FoundDevice>> {
    return readAllDevices(this.#options.files, (nqn) => this.#isOwn(nqn));
  }

  async offered(at: TargetAddress, context: CallContext): Promise<readonly string[]> {
    const { host, clock, discover: read = discover } = this.#options;
    const subsystems = await read({ ...at, ...host }, context, { clock });
    return [...new Set(subsystems.filter(({ transport }) => transport === "tcp").map(({ nqn }) => nqn))];
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async connected(): Promise<readonly string[]> {
    return readNqns(this.#options.files).filter((nqn) => this.#isOwn(nqn));
  }

  // deno-lint-ignore require-await -- the interface is asynchronous, /sys is not
  async live(): Promise<ReadonlySet<string>> {
    return new Set([...readLiveNqns(this.#options.files)].filter((nqn) => this.#isOwn(nqn)));
  }

  /**
   * Removes the subsystem, and returns only when it is gone from the kernel. The tool's output is only for the message.
   */
  async #remove(nqn: string, context: CallContext): Promise<void> {
    const { files, clock } = this.#options;
    if (isGone(files, nqn)) return;
    const said = await this.#reportRemoval(nqn, context);
    if (await poll(clock, context, () => isGone(files, nqn) || undefined)) return;
    throw new VolumeError(
      "unavailable",
      `Cannot disconnect because the kernel keeps it: nqn=${nqn} ${this.#states(nqn)}: ${said}`,
    );
  }

  /** An earlier attempt that still hangs in the kernel serves as well: the caller waits for it. */
  async #reportRemoval(nqn: string, context: CallContext): Promise<string> {
    try {
      return complaint(await this.#tool.disconnect(nqn, context));
    } catch (error) {
      if (VolumeError.is(error, "unavailable")) return error.message;
      throw error;
    }
  }

  /**
   * Flushes the subsystem's devices. Data that a device refuses is lost: the caller has checked that the device is
   * unused. A live device that is still writing is not disconnected.
   *
   * @throws {VolumeError} unavailable when a flush has not ended and a controller is live
   */
  async #flush(nqn: string, context: CallContext): Promise<void> {
    const { files, clock, notes } = this.#options;
    const { requestId } = context;
    const isLive = () => readControllers(files, nqn).some(({ state }) => state === "live");
    if (!isLive()) return;
    const leftMs = timeLeftMs(context, clock) / 2;
    for (const { path } of readDevices(files, nqn)) {
      using limited = limitSignal(clock, context.signal, Math.max(1, Math.min(flushMs, leftMs)));
      try {
        if (await files.flush(path, limited.signal)) continue;
        // The thread that flushes returns no reason.
        const reason = "the kernel refuses it: see the node's kernel log";
        notes.warn("cannot flush before a disconnect", { nqn, path, reason, requestId });
      } catch (error) {
        context.signal.throwIfAborted();
        if (!VolumeError.is(error)) throw error;
        if (isLive()) {
          throw new VolumeError(
            "unavailable",
            `Cannot disconnect because the device still takes what was written to it: nqn=${nqn} device=${path}: ` +
              `${error.message}; try again`,
          );
        }
        notes.warn("cannot flush before a disconnect", { nqn, path, reason: error.message, requestId });
      }
    }
  }

  #notLive(verb: string, nqn: string): VolumeError {
    return new VolumeError(
      "unavailable",
      `Cannot ${verb} the subsystem because no connection to it is live: nqn=${nqn} ${this.#states(nqn)}`,
    );
  }

  #states(nqn: string): string {
    const controllers = readControllers(this.#options.files, nqn);
    return `controllers=${
      controllers.map(({ name, stateName }) => `${name}:${stateName}`).join(",") || "none"
    }`;
  }

  #isOwn(nqn: string): boolean {
    return nqn.startsWith(`${this.#options.nqnPrefix}:`);
  }

  #assertOwn(verb: string, nqn: string): void {
    if (this.#isOwn(nqn)) return;
    throw new VolumeError(
      "precondition",
      `Cannot ${verb} the subsystem because it is not this driver's: nqn=${nqn} prefix=${this.#options.nqnPrefix}; ` +
        "node and controller need the same --nqn-prefix",
    );
  }
}
