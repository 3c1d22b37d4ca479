import { limitSignal, timeLeftMs } from "../../async/deadline.ts";
import type { Turn } from "../../async/semaphore.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { VolumeError } from "../../volume/errors.ts";
import type { SysfsWriter } from "../../host/sysfs_writer.ts";
import type { HostIdentity } from "../../volume/model/host/identity.ts";
import { parseExportNqn } from "../../volume/model/nqn.ts";
import { describeUser } from "../../volume/model/host/device_user.ts";
import type { MissingPath, Target } from "../../volume/ports/node_ports.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import { type UserPorts, usersOf } from "../../volume/rules/host/device_users.ts";
import { leadsTo, type Resolve, type TargetPath, targetPaths } from "./addresses.ts";
import type { Asked, AskedTargets } from "./asked_targets.ts";
import type { ConnectTurns } from "./connect_turns.ts";
import type { NvmeTool, PathAddress } from "./nvme_tool.ts";
import {
  connectFailure,
  isAlreadyConnected,
  kernelBusy,
  notOffered,
  silentTarget,
} from "./refused_connect.ts";
import { joinsPaths, type KernelController, readControllers, readDevices, readPending } from "./sysfs.ts";
import { maxWaitOf } from "../../async/poll.ts";

/** The adapters of an attempt. */
interface AttemptAdapters extends UserPorts {
  readonly files: KernelFiles;
  readonly tool: NvmeTool;
  readonly asked: AskedTargets;
  readonly turns: ConnectTurns;
  readonly attributes: SysfsWriter;
  readonly resolve: Resolve;
  readonly clock: Clock;
  readonly notes: { warn(message: string, fields: Readonly<Record<string, unknown>>): void };
  readonly host: HostIdentity;
  readonly nqnPrefix: string;
  /** Disconnects the unused subsystem. */
  readonly removeUnused: () => Promise<void>;
}

const pollMs = 100;
/** The time that remains of a call for killing a child and for saying what it waited for, in milliseconds. */
const marginMs = 3_000;

/**
 * One attempt to connect a target. It reads the existing connections, adds missing ones until one is live, waits for
 * those under way, and reads again. It trusts only the kernel, not what a tool reports about a connection.
 */
export class ConnectAttempt {
  readonly #adapters: AttemptAdapters;
  readonly #target: Target;
  readonly #context: CallContext;
  /** Failures by configured address. */
  readonly #failures = new Map<string, VolumeError>();
  /** Connections of the legacy driver that are in use, see {@linkcode identityOf}. */
  readonly #kept = new Set<string>();
  #rounds = 0;
  readonly #startedMs: number;
  readonly #untilMs: number;

  constructor(adapters: AttemptAdapters, target: Target, context: CallContext) {
    this.#adapters = adapters;
    this.#target = target;
    this.#context = context;
    this.#startedMs = adapters.clock.now();
    this.#untilMs = this.#startedMs + maxWaitOf(context, adapters.clock);
  }

  /**
   * Returns when at least one path is live, with the addresses that have none.
   *
   * @throws {VolumeError} unavailable when no path becomes live; precondition when the kernel has no initiator, or a
   *   connection is in use that is neither this driver's nor the legacy driver's
   */
  async run(): Promise<readonly MissingPath[]> {
    const { resolve } = this.#adapters;
    const paths = await targetPaths(this.#target, resolve, this.#context);
    for (;;) {
      const controllers = this.#read();
      const foreign = controllers.find((controller) => this.#isMismatched(controller, paths));
      const untried = this.#missing(controllers, paths).filter(({ given }) => !this.#failures.has(given));
      if (foreign !== undefined) await this.#replace(foreign, paths);
      else if (controllers.some(({ state }) => state === "live")) return this.#settle(controllers, paths);
      else if (untried.length > 0) await this.#addFirst(untried);
      else if (controllers.length > 0) await this.#wait(controllers);
      else throw this.#refused();
    }
  }

  /**
   * Adds the paths that are missing beside existing ones, in the last turns; returns those that are missing still. A
   * connection that is deleted, or is not this driver's, gets none.
   */
  async addMissing(): Promise<readonly MissingPath[]> {
    const { resolve, files } = this.#adapters;
    if (!joinsPaths(files)) return [];
    const paths = await targetPaths(this.#target, resolve, this.#context);
    const isOurs = (controller: KernelController) =>
      controller.state !== "deleting" && !this.#isMismatched(controller, paths);
    // A fence or an unstage may end it while this waits for its turn.
    const isThere = () => {
      const controllers = this.#read();
      return controllers.length > 0 && controllers.every(isOurs);
    };
    for (const path of this.#missing(this.#read(), paths)) {
      if (!isThere()) return [];
      await this.#addPath(path, { signal: this.#context.signal, turn: "last", onlyOffered: true, isThere });
    }
    return this.#settle(this.#read(), paths, { quiet: true });
  }

  #read(): readonly KernelController[] {
    return readControllers(this.#adapters.files, this.#target.nqn);
  }

  /** Whether a connection has another address or another host. One that is being deleted no longer counts. */
  #isMismatched(controller: KernelController, paths: readonly TargetPath[]): boolean {
    const { hostNqn, hostId } = this.#adapters.host;
    if (controller.state === "deleting" || this.#kept.has(identityOf(controller))) return false;
    return !leadsThere(controller, paths) || controller.hostNqn !== hostNqn ||
      (controller.hostId !== "" && controller.hostId.toLowerCase() !== hostId);
  }

  /**
   * Whether the legacy driver made a connection. It connects as a host that the nvme tool makes up, under an NQN
   * without an epoch. Its volumes are migrated while they are mounted; the device is proven like any other.
   */
  #isLegacyDrivers(controller: KernelController, paths: readonly TargetPath[]): boolean {
    return leadsThere(controller, paths) &&
      parseExportNqn(this.#target.nqn, this.#adapters.nqnPrefix)?.epoch === "";
  }

  /** Paths without a connection. Where the kernel does not join paths, each would become a device of its own. */
  #missing(controllers: readonly KernelController[], paths: readonly TargetPath[]): readonly TargetPath[] {
    const joined = joinsPaths(this.#adapters.files);
    // A second path with another host identity than the first would become a second device, or fail.
    if ((!joined || this.#kept.size > 0) && controllers.length > 0) return [];
    return paths.filter((path) => !controllers.some((controller) => leadsTo(path, controller)));
  }

  async #replace(foreign: KernelController, paths: readonly TargetPath[]): Promise<void> {
    const { files, removeUnused } = this.#adapters;
    const { nqn, name, stateName, address, port, hostNqn } = foreign;
    const facts = { nqn, controller: name, state: stateName, address, port, hostnqn: hostNqn };
    for (const device of readDevices(files, nqn)) {
      const [user] = await usersOf(this.#adapters, device, "unused", this.#context);
      if (user === undefined) continue;
      const use = describeUser(user).words;
      if (this.#isLegacyDrivers(foreign, paths)) {
        this.#kept.add(identityOf(foreign));
        this.#warn("keeps the connection that the legacy driver has made, because it is in use", {
          ...facts,
          use,
        });
        return;
      }
      const text = Object.entries(facts).map(([key, value]) => `${key}=${value}`).join(" ");
      throw new VolumeError(
        "precondition",
        "Cannot connect because the subsystem is connected to another address or as another host, " +
          `and in use: ${text} wanted=${this.#target.addresses.join(",")}:${this.#target.port} ` +
          `hostnqn=${this.#adapters.host.hostNqn} device=${device.path} ${use}; ` +
          "end what uses it, and it is replaced",
      );
    }
    if (this.#rounds++ > 0) await this.#pause();
    this.#warn("replaces a connection to another address or as another host, which nothing uses", facts);
    await removeUnused();
  }

  /** Adds paths until the first one is there: the others must not hold it up. */
  async #addFirst(untried: readonly TargetPath[]): Promise<void> {
    // From the second time on, another process connected first, or an existing connection went away.
    if (this.#rounds++ > 0) await this.#pause();
    const paths = joinsPaths(this.#adapters.files) ? untried : untried.slice(0, 1);
    const first = new AbortController();
    const signal = AbortSignal.any([this.#context.signal, first.signal]);
    const onAdded = () => first.abort(new VolumeError("cancelled", "Another path is there"));
    await Promise.all(paths.map(async (path) => {
      try {
        await this.#addPath(path, { signal, onAdded });
      } catch (error) {
        if (!first.signal.aborted) throw error;
        this.#context.signal.throwIfAborted();
      }
    }));
  }

  async #addPath(path: TargetPath, wanted: WantedPath): Promise<void> {
    let failure: VolumeError | undefined;
    for (const address of path.addresses) {
      failure = await this.#addAddress(address, wanted);
      if (failure === undefined) return;
    }
    this.#failures.set(path.given, failure!);
  }

  /**
   * Asks the target, and connects in its turn; asks again where the turn came too late to rely on the answer. Returns
   * undefined when the path was added or existed already. The next round reads whose it is, and its state.
   */
  async #addAddress(address: PathAddress, wanted: WantedPath): Promise<VolumeError | undefined> {
    const { asked, turns } = this.#adapters;
    const { signal, turn } = wanted;
    const ask = async () =>
      this.#obstacle(address, await asked.ask(address, { ...this.#context, signal }), wanted);
    const obstacle = await ask();
    if (obstacle !== undefined) return obstacle;
    using limited = this.#limit(signal);
    let hasBegun = false;
    try {
      return await turns.run(address.address, { signal: limited.signal, turn }, async (leave) => {
        hasBegun = true;
        const refused = await ask();
        if (refused !== undefined || wanted.isThere?.() === false) return refused;
        return await this.#connect(address, limited.signal, wanted, leave);
      });
    } catch (error) {
      signal.throwIfAborted();
      if (!VolumeError.is(error)) throw error;
      const busy = hasBegun ? this.#otherConnect(address) : turns.holder;
      return busy === undefined ? error : kernelBusy(this.#target.nqn, address, busy);
    }
  }

  #obstacle(address: PathAddress, answer: Asked, { onlyOffered }: WantedPath): VolumeError | undefined {
    const { nqn } = this.#target;
    if (answer.silent) return silentTarget(nqn, address);
    const isOffered = answer.offered?.includes(nqn) ?? false;
    return onlyOffered && !isOffered ? notOffered(nqn, address) : undefined;
  }

  async #connect(
    address: PathAddress,
    signal: AbortSignal,
    { onAdded }: WantedPath,
    leave: (ended: Promise<void>) => void,
  ): Promise<VolumeError | undefined> {
    const { tool, files } = this.#adapters;
    const result = await tool.connect(this.#target, address, signal, leave);
    if (result.code !== 0 && !isAlreadyConnected(result)) {
      return connectFailure(files, this.#target.nqn, address, result);
    }
    // Within the turn, so that no other path of this attempt begins.
    onAdded?.();
    return undefined;
  }

  /** A signal that ends early enough before the call to say what it waited for. */
  #limit(signal: AbortSignal) {
    const { clock } = this.#adapters;
    const leftMs = timeLeftMs(this.#context, clock);
    const late = new VolumeError(
      "unavailable",
      `Cannot connect because the kernel does not end the connect in time: nqn=${this.#target.nqn}`,
    );
    return limitSignal(clock, signal, Math.max(leftMs / 2, leftMs - marginMs), late);
  }

  /**
   * The address that the kernel connects instead of this one; undefined when it connects this one, or none is seen. A
   * connect of another program, such as one at the node's start, holds the kernel's lock just as well.
   */
  #otherConnect(address: PathAddress): string | undefined {
    const pending = readPending(this.#adapters.files);
    const path = { given: "", addresses: [address] };
    return pending.some((each) => leadsTo(path, each)) ? undefined : pending[0]?.address;
  }

  /** Ends the attempt: the volume can be used. Returns the addresses without a connection. */
  #settle(
    controllers: readonly KernelController[],
    paths: readonly TargetPath[],
    { quiet = false } = {},
  ): readonly MissingPath[] {
    const { nqn } = this.#target;
    for (const [address, failure] of quiet ? [] : this.#failures) {
      this.#warn("one path of several is missing", { nqn, address, reason: failure.message });
    }
    for (const { name, state } of controllers) if (state === "live") this.#setFastFail(name);
    return this.#missing(controllers, paths).map(({ given }) => ({
      address: given,
      reason: this.#failures.get(given)?.message,
    }));
  }

  /** Sets `fast_io_fail_tmo`, for which the nvme tool has no option. */
  #setFastFail(controller: string): void {
    const { files, attributes } = this.#adapters;
    const { fastIoFailTmo: wanted, nqn } = this.#target;
    const path = `/sys/class/nvme/${controller}/fast_io_fail_tmo`;
    if (wanted === undefined || files.readText(path) === String(wanted)) return;
    try {
      attributes.write(path, wanted);
    } catch (error) {
      if (!VolumeError.is(error)) throw error;
      this.#warn("cannot set fast_io_fail_tmo", { nqn, controller, reason: error.message });
    }
  }

  #warn(message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#adapters.notes.warn(message, { ...fields, requestId: this.#context.requestId });
  }

  async #wait(controllers: readonly KernelController[]): Promise<void> {
    const states = controllers.map(({ name, stateName, address, port }) =>
      `controller=${name} state=${stateName} address=${address} port=${port}`
    );
    await this.#pause(states.join(" "));
  }

  async #pause(states = "state=being connected by another process"): Promise<void> {
    const { clock } = this.#adapters;
    if (clock.now() + pollMs > this.#untilMs) {
      const seconds = Math.round((clock.now() - this.#startedMs) / 1000);
      throw new VolumeError(
        "unavailable",
        `Cannot connect because the connection does not become live: nqn=${this.#target.nqn} ${states}, watched for ` +
          `${seconds} s${this.#describeFailures()}; the router is away, or does not export the volume any more`,
      );
    }
    await clock.sleep(pollMs, this.#context.signal);
  }

  #refused(): VolumeError {
    const [first, ...more] = [...this.#failures.values()];
    if (first !== undefined && more.length === 0) return first;
    const kind = first?.kind ?? "unavailable";
    return new VolumeError(
      kind,
      `Cannot connect at any address: nqn=${this.#target.nqn}${this.#describeFailures()}`,
    );
  }

  #describeFailures(): string {
    return [...this.#failures.values()].map(({ message }) => `; ${message}`).join("");
  }
}

/** How a path is to be added. */
interface WantedPath {
  readonly signal: AbortSignal;
  readonly turn?: Turn;
  /** Whether there still is the connection beside which it is added: asked right before. @default {it needs none} */
  readonly isThere?: () => boolean;
  /** Whether only a target is to be connected that says it offers the subsystem. */
  readonly onlyOffered?: boolean;
  /** Called before the turn ends. */
  readonly onAdded?: () => void;
}

function leadsThere(controller: KernelController, paths: readonly TargetPath[]): boolean {
  return controller.transport === "tcp" && paths.some((path) => leadsTo(path, controller));
}

/** Identifies a connection, even after another one gets its name. */
function identityOf({ name, hostNqn, hostId, address, port }: KernelController): string {
  return [name, hostNqn, hostId, address, port].join(" ");
}
