import type { Processes, ToolResult } from "../../host/processes.ts";
import type { HostIdentity } from "../../volume/host_identity.ts";
import type { CallContext, Clock, Target } from "../../volume/ports.ts";
import { AtMost } from "./at_most.ts";

/** Router upgrades take minutes: a volume that is given up sooner fails its pods for nothing. */
const defaultCtrlLossTmo = 1800;
const defaultReconnectDelay = 5;

/** A target that takes the connection and then says nothing is given up by the kernel after about a minute. */
const connectMs = 75_000;
/** A live controller whose target is silent says goodbye first, and waits a minute for the answer. */
const disconnectMs = 100_000;
const rescanMs = 10_000;

/** The tool takes some memory, of which a node has little to give. */
const mostAtOnce = 8;

/** Where one path to a subsystem leads. */
export interface PathAddress {
  /** An IP address: the tool resolves no names. */
  readonly address: string;
  readonly port: number;
}

/** nvme(1) of nvme-cli 2, as far as this driver uses it. Nothing here ever resets a controller. */
export class NvmeTool {
  readonly #processes: Processes;
  readonly #clock: Clock;
  readonly #host: HostIdentity;
  /** Whoever disconnects does not queue behind those who wait for a target that is away. */
  readonly #connecting = new AtMost(mostAtOnce);
  readonly #disconnecting = new AtMost(mostAtOnce);

  constructor(processes: Processes, clock: Clock, host: HostIdentity) {
    this.#processes = processes;
    this.#clock = clock;
    this.#host = host;
  }

  /** Adds a path to a subsystem. Throws what {@linkcode Processes.run} throws. */
  async connect(target: Target, path: PathAddress, context: CallContext): Promise<ToolResult> {
    const args = connectArguments(target, path, this.#host);
    // A path that hangs keeps neither another one nor a disconnect from the subsystem.
    const subject = `${target.nqn} at ${path.address}:${path.port}`;
    return await this.#run(this.#connecting, args, subject, connectMs, context);
  }

  /** Removes every controller of a subsystem; waits for that in the kernel. */
  async disconnect(nqn: string, context: CallContext): Promise<ToolResult> {
    return await this.#run(this.#disconnecting, ["disconnect", "-n", nqn], nqn, disconnectMs, context);
  }

  /** Makes a live controller look at its namespaces again. */
  async rescan(controller: string, context: CallContext): Promise<ToolResult> {
    const args = ["ns-rescan", `/dev/${controller}`];
    return await this.#run(this.#connecting, args, controller, rescanMs, context);
  }

  #run(
    atMost: AtMost,
    args: readonly string[],
    subject: string,
    timeoutMs: number,
    context: CallContext,
  ): Promise<ToolResult> {
    const { signal } = context;
    return atMost.take(
      context,
      this.#clock,
      () => this.#processes.run("nvme", { args, signal, subject, timeoutMs }),
    );
  }
}

function connectArguments(target: Target, path: PathAddress, host: HostIdentity): readonly string[] {
  const { ctrlLossTmo = defaultCtrlLossTmo, reconnectDelay = defaultReconnectDelay } = target;
  const optional = (name: string, value: number | undefined) =>
    value === undefined ? [] : [`--${name}=${value}`];
  return [
    ...["connect", "-t", "tcp", "-a", path.address, "-s", String(path.port), "-n", target.nqn],
    ...[`--hostnqn=${host.hostNqn}`, `--hostid=${host.hostId}`, "--config=none"],
    ...[`--ctrl-loss-tmo=${ctrlLossTmo}`, `--reconnect-delay=${reconnectDelay}`],
    ...optional("keep-alive-tmo", target.keepAliveTmo),
    ...optional("nr-io-queues", target.nrIoQueues),
  ];
}
