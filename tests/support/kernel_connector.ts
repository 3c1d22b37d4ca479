import { FakeClock } from "../fakes/clock.ts";
import { type FakeCall, fakeCall } from "../fakes/contexts.ts";
import { type FakeController, FakeNvmeKernel } from "../fakes/nvme_kernel.ts";
import { hostIdentityOf } from "../../src/volume/model/host/identity.ts";
import { duringCall } from "../../src/async/waiting.ts";
import type { discover } from "../../src/nvme/discover.ts";
import type { MissingPath, Target } from "../../src/volume/ports/node_ports.ts";
import { KernelConnector } from "../../src/nvme/kernel/kernel_connector.ts";

/** The identity under which targets see this node. */
export const host = hostIdentityOf("node-1");
/** The prefix of this driver's NQNs. */
export const prefix = "nqn.2000-02.com.mikrotik";
/** A connector on a fake kernel. */
export class Deps extends FakeNvmeKernel {
  readonly clock = new FakeClock();
  readonly warnings: string[] = [];
  readonly written: string[] = [];
  /** The number of attributes that are held now. */
  held = 0;
  onHold = () => {};
  readonly names: Record<string, readonly string[]> = {};
  /** The addresses that accept connections and say nothing. */
  readonly silent = new Set<string>();
  /** The addresses that were asked, in order. */
  readonly asked: string[] = [];
  /** What targets offer. */
  offers: (address: string) => readonly string[] = () => [];
  readonly call: FakeCall;
  readonly connector: KernelConnector;

  constructor(
    multipath = true,
    limitMs = 60_000,
    discovers?: typeof discover,
  ) {
    super({ multipath });
    this.call = fakeCall(this.clock, limitMs);
    this.processes.clock = this.clock;
    this.connector = new KernelConnector({
      files: this.files,
      processes: this.processes,
      clock: this.clock,
      devices: this.devices,
      mounts: this.mountTable,
      paths: { info: () => Promise.resolve(undefined) },
      host,
      nqnPrefix: prefix,
      attributes: {
        write: (path, value) => void this.written.push(`${path}=${value}`),
        hold: (path) => {
          this.onHold();
          this.held++;
          return { path: `/held${path}`, release: () => void this.held-- };
        },
      },
      resolve: (name) =>
        this.names[name] ? Promise.resolve(this.names[name]) : Promise.reject(new Error("ENOTFOUND")),
      discover: discovers ?? ((at, { signal }) => this.#answer(at.address, signal)),
      notes: { warn: (message, fields) => void this.warnings.push(`${message} ${JSON.stringify(fields)}`) },
    });
  }

  connect(to: Target): Promise<readonly MissingPath[]> {
    return this.connector.connect(to, this.call);
  }

  /** Lets the kernel wait a minute for an address that accepts connections and says nothing. */
  freeze(address: string): void {
    this.silent.add(address);
    const known = this.hang;
    this.hang = (at) => at === address ? this.clock.sleep(60_000) : known(at);
  }

  async #answer(address: string, signal: AbortSignal) {
    this.asked.push(address);
    if (this.silent.has(address)) await duringCall(new Promise<never>(() => {}), signal);
    return this.offers(address).map((nqn) => ({ nqn, address, port: 4420, transport: "tcp" }));
  }

  set(controller: FakeController, state: string): void {
    controller.state = state;
    this.show();
  }

  get addresses(): readonly string[] {
    return this.controllers.map(({ address }) => address).toSorted();
  }

  /** Lets time pass until the promise settles. */
  async inTime<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const watched = promise.finally(() => settled = true);
    watched.catch(() => {});
    for (let i = 0; i < 1000 && !settled; i++) await this.clock.advance(100);
    return await watched;
  }
}
