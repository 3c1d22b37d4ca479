import type { Clock } from "../../volume/ports/system.ts";
import type { ExportAccess, Exporter } from "../model/exports.ts";
import { Connection, type ConnectionServices } from "./connection.ts";
import { Controller, maxQueues, Subsystem } from "./controller.ts";
import { type ConnectRequest, wrongData, wrongEntry, wrongHost } from "./fabrics_commands.ts";
import { describeExports, discoveryNqn } from "./admin_commands.ts";

/** Options of {@linkcode NvmeTarget}. */
export interface NvmeTargetOptions {
  readonly clock: Clock;
  /** Address to listen at. @default {"127.0.0.1"} */
  readonly host?: string;
  /** 0 takes any free one. @default {0} */
  readonly port?: number;
  /** Size of the blocks of what is exported, in bytes: a power of two. @default {512} */
  readonly blockBytes?: number | undefined;
}

const anyController = 0xffff;
const maxControllers = 0xffef;

/**
 * An NVMe/TCP target in this process: an exporter to which any initiator can connect. It listens on one port, and a disk
 * that names another is not reached.
 */
export class NvmeTarget implements Exporter {
  readonly port: number;
  readonly #listener: Deno.TcpListener;
  readonly #clock: Clock;
  readonly #blockBytes: number | undefined;
  readonly #subsystems = new Map<string, Subsystem>();
  readonly #controllers = new Map<number, Controller>();
  readonly #connections = new Map<Connection, Deno.TcpConn>();
  readonly #accepting: Promise<void>;
  #generation = 1n;
  #nextController = 1;
  #listening = true;

  /** Listens at once. */
  constructor(options: NvmeTargetOptions) {
    this.#clock = options.clock;
    this.#blockBytes = options.blockBytes;
    this.#listener = Deno.listen({ hostname: options.host ?? "127.0.0.1", port: options.port ?? 0 });
    this.port = this.#listener.addr.port;
    this.#accepting = this.#accept();
  }

  /** Connections that are there now. */
  get connections(): number {
    return this.#connections.size;
  }

  serve(nqn: string, path: string | undefined, access: ExportAccess): void {
    const known = this.#subsystems.get(nqn);
    const isSame = known?.path === path && known?.access.identity.uuid === access.identity.uuid;
    if (known !== undefined && !isSame) this.withdraw(nqn);
    if (this.#subsystems.has(nqn)) return this.change(nqn, access);
    this.#subsystems.set(nqn, new Subsystem(nqn, path, access, this.#blockBytes));
    this.#generation++;
  }

  change(nqn: string, access: ExportAccess): void {
    const subsystem = this.#subsystems.get(nqn);
    if (subsystem === undefined) return;
    const before = subsystem.access;
    if (subsystem.lingering || isShownOtherwise(before, access)) this.#generation++;
    subsystem.access = access;
    subsystem.lingering = false;
    if (before.port !== access.port) return subsystem.cut();
    if (before.sizeBytes === access.sizeBytes) return;
    for (const controller of subsystem.controllers) controller.namespaceChanged();
  }

  linger(nqn: string): void {
    const subsystem = this.#subsystems.get(nqn);
    if (subsystem === undefined) return;
    subsystem.lingering = true;
    this.#generation++;
  }

  refuse(nqn: string): void {
    const subsystem = this.#subsystems.get(nqn);
    if (subsystem === undefined) return;
    this.#subsystems.delete(nqn);
    this.#generation++;
    subsystem.refuse();
  }

  withdraw(nqn: string): void {
    const subsystem = this.#subsystems.get(nqn);
    if (subsystem === undefined) return;
    this.#subsystems.delete(nqn);
    this.#generation++;
    subsystem.close();
  }

  /** Without listening every connection is dropped, also one that only comes. */
  listen(listening: boolean): void {
    this.#listening = listening;
    if (!listening) { for (const connection of [...this.#connections.keys()]) connection.close(); }
  }

  async close(): Promise<void> {
    this.listen(false);
    this.#listener.close();
    for (const nqn of [...this.#subsystems.keys()]) this.withdraw(nqn);
    await Promise.all([this.#accepting, ...[...this.#connections.keys()].map(({ done }) => done)]);
  }

  async #accept(): Promise<void> {
    try {
      for await (const socket of this.#listener) this.#receive(socket);
    } catch (error) {
      // How the runtime says that the listener was closed.
      if (!(error instanceof Deno.errors.BadResource)) throw error;
    }
  }

  #receive(socket: Deno.TcpConn): void {
    if (!this.#listening) return socket.close();
    // Small packets that wait for each other would cost 40 ms a command.
    socket.setNoDelay(true);
    const connection = new Connection(socket, this.#servicesFor(socket));
    this.#connections.set(connection, socket);
    void connection.done.then(() => this.#connections.delete(connection));
  }

  #servicesFor(socket: Deno.TcpConn): ConnectionServices {
    // A host is told the address at which it has come: the one listened at may stand for all there are.
    const address = socket.localAddr.hostname;
    return {
      admit: (request) => this.#admit(request),
      discoveryLog: ({ hostNqn }) => {
        const shown = [...this.#subsystems.values()]
          .filter((subsystem) => this.#isReachable(subsystem) && subsystem.allows(hostNqn));
        return describeExports(shown, this.#generation, { address, port: this.port });
      },
    };
  }

  #admit(request: ConnectRequest): Controller {
    const subsystem = this.#subsystems.get(request.nqn);
    const found = subsystem !== undefined && this.#isReachable(subsystem);
    if (!found && request.nqn !== discoveryNqn) throw wrongData("nqn");
    if (found && !subsystem.allows(request.hostNqn)) throw wrongHost();
    if (request.queueId !== 0) return this.#existing(request, subsystem);
    if (request.controllerId !== anyController) throw wrongData("controllerId");
    return this.#make(request, found ? subsystem : undefined);
  }

  #existing(
    { queueId, controllerId, hostNqn }: ConnectRequest,
    subsystem: Subsystem | undefined,
  ): Controller {
    if (queueId > maxQueues || subsystem === undefined) throw wrongEntry("queueId");
    const controller = this.#controllers.get(controllerId);
    const own = controller?.subsystem === subsystem && controller.hostNqn === hostNqn && !controller.ended;
    if (controller === undefined || !own) throw wrongData("controllerId");
    return controller;
  }

  #make({ hostNqn, keepAliveMs }: ConnectRequest, subsystem: Subsystem | undefined): Controller {
    for (const [id, { ended }] of this.#controllers) if (ended) this.#controllers.delete(id);
    while (this.#controllers.has(this.#nextController)) this.#countController();
    const id = this.#nextController;
    this.#countController();
    const controller = new Controller({ id, subsystem, hostNqn, keepAliveMs, clock: this.#clock });
    this.#controllers.set(id, controller);
    return controller;
  }

  #countController(): void {
    this.#nextController = this.#nextController % maxControllers + 1;
  }

  #isReachable({ access, lingering }: Subsystem): boolean {
    return !lingering && access.port === this.port;
  }
}

/** Whether the discovery log shows something else to somebody. */
function isShownOtherwise(before: ExportAccess, after: ExportAccess): boolean {
  return before.port !== after.port || before.hosts?.join() !== after.hosts?.join();
}
