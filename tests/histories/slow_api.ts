import { limitSignal } from "../../src/async/deadline.ts";
import { Semaphore } from "../../src/async/semaphore.ts";
import { type ApiCall, ApiError, type ConnectedApi } from "../../src/kubernetes/api.ts";
import { maxConnections } from "../../src/kubernetes/client.ts";
import { Connections } from "../../src/kubernetes/connections.ts";
import { Election, RanOut } from "../../src/kubernetes/election.ts";
import { ClusterLease } from "../../src/kubernetes/lease.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import { SeededRandom } from "../fakes/random.ts";
import type { Process } from "./process.ts";

/** How long a slow API server takes for a page of a list, and for a Lease, in milliseconds. */
const [pageMs, leaseMs] = [4_000, 1_000];

/** How long requests wait for an answer, in milliseconds, if they do not say. */
const defaultTimeoutMs = 10_000;

/** How many lists each kind of work reads at once: more than there are connections. */
const lists = 2 * maxConnections;

/** A client of a slow API server; it keeps one Lease. */
class SlowClient implements ConnectedApi {
  readonly #clock: Clock;
  readonly #connections: Semaphore;
  readonly #max: number;
  #atOnce = 0;
  #lease: unknown;
  #version = 0;

  constructor(clock: Clock, connections: number) {
    this.#clock = clock;
    this.#connections = new Semaphore(connections);
    this.#max = connections;
  }

  /** Whether another request waits for a connection. */
  get isFull(): boolean {
    return this.#atOnce >= this.#max;
  }

  apart(connections: number): SlowClient {
    return new SlowClient(this.#clock, connections);
  }

  async request<T>({ path, body, signal, timeoutMs = defaultTimeoutMs }: ApiCall): Promise<T> {
    using limited = limitSignal(this.#clock, signal ?? new AbortController().signal, timeoutMs);
    const isLease = path.includes("/leases");
    try {
      await this.#connections.run(limited.signal, async () => {
        this.#atOnce++;
        await this.#clock.sleep(isLease ? leaseMs : pageMs, limited.signal).finally(() => this.#atOnce--);
      });
    } catch (cause) {
      throw new ApiError(0, `Cannot reach the API server: ${path}`, { cause });
    }
    if (body !== undefined) this.#lease = body;
    return { ...this.#lease ?? {}, metadata: { resourceVersion: `${++this.#version}` } } as T;
  }

  close(): void {}
}

/** What one leader asks of an API server that answers slowly: more lists than it has connections, and its Lease. */
export class SlowApi {
  readonly #clock: Clock;
  readonly #client: SlowClient;
  readonly #connections: Connections;
  readonly #stop = new AbortController();
  readonly #complain: (line: string) => void;
  /** How many calls read now. */
  #calls = 0;

  /**
   * @param isBusy whether calls read as much as the loops do
   * @param complain is called when one kind of work holds up another that is more urgent
   */
  constructor(process: Process, isBusy: boolean, complain: (line: string) => void) {
    this.#clock = process.clock;
    this.#complain = complain;
    this.#client = new SlowClient(process.clock, maxConnections);
    this.#connections = new Connections(this.#client);
    process.onDeath(() => this.end());
    void this.#lead(isBusy);
  }

  /** The API server is not slow any more, or the process does not reach it. */
  end(): void {
    this.#stop.abort();
  }

  /** A call or a loop reads. @throws {ApiError} */
  async read(by: "call" | "loop", signal = this.#stop.signal): Promise<void> {
    const { calls, lists } = this.#connections;
    const page = { method: "GET", path: "/lists", signal } as const;
    if (by === "loop") return await lists.request(page);
    const isFull = this.#client.isFull && this.#calls < maxConnections / 2;
    if (isFull) this.#complain("a call waited for lists of the loops");
    this.#calls++;
    try {
      await calls.request(page);
    } finally {
      this.#calls--;
    }
  }

  /** Wins an election without others, and reads lists while it leads. */
  async #lead(isBusy: boolean): Promise<void> {
    const clock = this.#clock;
    const api = this.#connections.lease;
    const store = new ClusterLease({ api, clock, namespace: "storage", name: "controller" });
    const random = new SeededRandom();
    const election = new Election({ store, identity: "leader", clock, random, report: () => {} });
    await election.run(async (signal) => {
      for (let n = 0; n < lists; n++) {
        void this.#goOn("loop");
        if (isBusy) void this.#goOn("call");
      }
      await clock.sleep(Infinity, signal).catch(() => {});
      if (signal.reason instanceof RanOut) this.#complain("lists held up the renewal of the Lease");
      this.end();
    }, this.#stop.signal);
  }

  async #goOn(by: "call" | "loop"): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) await this.read(by).catch(() => this.#clock.sleep(1_000, signal)).catch(() => {});
  }
}
