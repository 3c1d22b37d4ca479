import type { ToolResult } from "../../host/spawn.ts";
import { Semaphore } from "../../async/semaphore.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import type { Processes, RunOptions } from "../../host/processes.ts";
import type { SysfsWriter } from "../../host/sysfs_writer.ts";
import type { ToolName } from "../../host/tools.ts";
import type { HostIdentity } from "../../volume/model/host/identity.ts";
import type { CallContext, Clock } from "../../volume/ports/system.ts";
import type { Target } from "../../volume/ports/node_ports.ts";
import { type LeaveBehind, turnMs } from "./connect_turns.ts";
import { readControllers } from "./sysfs.ts";

/** Router upgrades take minutes: giving up a volume sooner would fail its pods needlessly. */
const defaultCtrlLossTmo = 1800;
const defaultReconnectDelay = 5;

/** For a live controller with a silent target the kernel first sends a shutdown, and waits a minute for the answer. */
const disconnectMs = 100_000;
const rescanMs = 10_000;

/** Each tool takes some of the node's scarce memory. */
const maxAtOnce = 8;

/** The address of one path to a subsystem. */
export interface PathAddress {
  /** An IP address: the kernel resolves no names. */
  readonly address: string;
  readonly port: number;
}

/** The adapters of the initiator. */
export interface InitiatorAdapters {
  readonly processes: Processes;
  readonly files: KernelFiles;
  readonly attributes: SysfsWriter;
  readonly clock: Clock;
  readonly host: HostIdentity;
}

/**
 * Controls the kernel's initiator. Nothing here ever resets a controller.
 *
 * Connecting and disconnecting is a write to a file of the kernel, which nvme(1) also makes in the end. But nvme-cli 2
 * first identifies every namespace of the node, and waits a minute for one silent target. The write waits in the
 * kernel, so a child process makes it: a thread could not be left behind, because this process could not exit before
 * the write ends.
 */
export class NvmeTool {
  readonly #adapters: InitiatorAdapters;
  /** Neither waits for the kernel's lock of connects, nor for the other. */
  readonly #rescanning = new Semaphore(maxAtOnce);
  readonly #disconnecting = new Semaphore(maxAtOnce);

  constructor(adapters: InitiatorAdapters) {
    this.#adapters = adapters;
  }

  /** Adds a path to a subsystem, in a turn of `ConnectTurns`. Throws what {@linkcode Processes.run} throws. */
  async connect(
    target: Target,
    path: PathAddress,
    signal: AbortSignal,
    onLeft: LeaveBehind,
  ): Promise<ToolResult> {
    const input = connectOptions(target, path, this.#adapters.host);
    // A path that hangs must not block another path or a disconnect of the subsystem.
    const subject = `${target.nqn} at ${path.address}:${path.port}`;
    return await this.#writeFabrics(subject, input, signal, onLeft);
  }

  /**
   * Makes the kernel load the transport, as a connect does (`nvmf_create_ctrl` in drivers/nvme/host/fabrics.c). The
   * kernel always refuses the request, because it names no address. It takes a turn of `ConnectTurns`.
   */
  async loadTransport(signal: AbortSignal, onLeft: LeaveBehind): Promise<void> {
    const input = "transport=tcp,nqn=nqn.2014-08.org.nvmexpress.discovery";
    await this.#writeFabrics("the module nvme_tcp", input, signal, onLeft);
  }

  async #writeFabrics(
    subject: string,
    input: string,
    signal: AbortSignal,
    onLeft: LeaveBehind,
  ): Promise<ToolResult> {
    const args = writingTo("/dev/nvme-fabrics");
    const options = { args, subject, input, timeoutMs: turnMs, signal, onLeft };
    return await this.#adapters.processes.run("dd", options);
  }

  /** Removes every controller of a subsystem, which waits in the kernel. Returns the first failure, if there is one. */
  async disconnect(nqn: string, context: CallContext): Promise<ToolResult> {
    const controllers = readControllers(this.#adapters.files, nqn);
    const results = await Promise.all(controllers.map(({ name }) => this.#delete(name, nqn, context)));
    return results.find(({ code }) => code !== 0) ?? results[0] ?? nothingDone;
  }

  async #delete(controller: string, nqn: string, context: CallContext): Promise<ToolResult> {
    const { files, attributes } = this.#adapters;
    const folder = `/sys/class/nvme/${controller}`;
    const held = attributes.hold(`${folder}/delete_controller`);
    if (held === undefined) {
      return files.readText(`${folder}/subsysnqn`) === nqn ? notHeld(folder) : nothingDone;
    }
    try {
      // The name may belong to another subsystem now. The held file belongs to the controller that had the name before
      // this check.
      if (files.readText(`${folder}/subsysnqn`) !== nqn) return nothingDone;
      const subject = `${controller} of ${nqn}`;
      const options = { args: writingTo(held.path), subject, input: "1\n", timeoutMs: disconnectMs };
      return await this.#run(this.#disconnecting, "dd", options, context);
    } finally {
      held.release();
    }
  }

  /** Makes a live controller rescan its namespaces. */
  async rescan(controller: string, context: CallContext): Promise<ToolResult> {
    const args = ["ns-rescan", `/dev/${controller}`];
    return await this.#run(
      this.#rescanning,
      "nvme",
      { args, subject: controller, timeoutMs: rescanMs },
      context,
    );
  }

  #run(
    limit: Semaphore,
    tool: ToolName,
    options: Omit<RunOptions, "signal">,
    context: CallContext,
  ): Promise<ToolResult> {
    const { processes } = this.#adapters;
    const { signal } = context;
    return limit.run(signal, () => processes.run(tool, { ...options, signal }));
  }
}

const nothingDone: ToolResult = { code: 0, stdout: "", stderr: "", bytes: new Uint8Array() };

/** The result for a file that exists and cannot be opened. The message is all that is known. */
function notHeld(folder: string): ToolResult {
  const stderr =
    `${folder}/delete_controller does not open for writing: /sys is read-only here, or not this process's`;
  return { ...nothingDone, code: 1, stderr };
}

/** The arguments of dd(1) for writing its input to a file of the kernel, in one piece. */
function writingTo(path: string): readonly string[] {
  return [`of=${path}`, "bs=4096", "count=1", "iflag=fullblock", "conv=nocreat,notrunc", "status=none"];
}

/** The options of /dev/nvme-fabrics (`opt_tokens` in drivers/nvme/host/fabrics.c). */
function connectOptions(target: Target, path: PathAddress, host: HostIdentity): string {
  const { ctrlLossTmo = defaultCtrlLossTmo, reconnectDelay = defaultReconnectDelay } = target;
  const options = {
    transport: "tcp",
    traddr: path.address,
    trsvcid: path.port,
    nqn: target.nqn,
    hostnqn: host.hostNqn,
    hostid: host.hostId,
    ctrl_loss_tmo: ctrlLossTmo,
    reconnect_delay: reconnectDelay,
    keep_alive_tmo: target.keepAliveTmo,
    nr_io_queues: target.nrIoQueues,
  };
  const { digests = [] } = target;
  return [
    ...Object.entries(options).flatMap(([name, value]) => value === undefined ? [] : [`${name}=${value}`]),
    ...digests.map((digest) => digest === "header" ? "hdr_digest" : "data_digest"),
  ].join(",");
}
