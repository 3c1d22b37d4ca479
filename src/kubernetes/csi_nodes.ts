import { messageOf } from "../volume/error_messages.ts";
import { limitSignal } from "../async/deadline.ts";
import { SingleFlight } from "../async/single_flight.ts";
import type { CallContext, Clock } from "../volume/ports/system.ts";
import type { NodeDirectory } from "../volume/ports/cluster_ports.ts";
import type { KubernetesApi } from "./api.ts";
import {
  csiNodesPath,
  listKept,
  nodesPath,
  parseCsiNode,
  parseNode,
  type RawCsiNode,
  type RawNode,
} from "./objects.ts";

/** Options of {@linkcode CsiNodes}. */
export interface CsiNodesOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly driverName: string;
  /** Nodes that are known besides those of the cluster. */
  readonly others: NodeDirectory;
  /** Called with a warning when the cluster cannot be asked. */
  readonly warn: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** How long a list is used, and how long a missing node causes no further list, in milliseconds. */
const listMs = 5 * 60_000;
const relistMs = 2_000;

/** How long a call waits for the list, in milliseconds. */
const timeoutMs = 5_000;

/** The nodes on which this driver is registered, from the cluster's CSINodes. */
export class CsiNodes implements NodeDirectory {
  readonly #options: CsiNodesOptions;
  /** The names of their Nodes, by node id: several if they share one. */
  #known: ReadonlyMap<string, readonly string[]> = new Map();
  #listedMs = -Infinity;
  readonly #listing = new SingleFlight<void>();

  constructor(options: CsiNodesOptions) {
    this.#options = options;
  }

  /**
   * While the API server does not answer, every node counts as known: the caller has the name from the API server, and
   * attaching must not depend on it.
   */
  async isKnown(nodeId: string, context: CallContext): Promise<boolean> {
    if (await this.#options.others.isKnown(nodeId, context)) return true;
    const ageMs = this.#options.clock.monotonicMs() - this.#listedMs;
    if (ageMs < (this.#known.has(nodeId) ? listMs : relistMs)) return this.#known.has(nodeId);
    try {
      await this.#list();
      return this.#known.has(nodeId);
    } catch (error) {
      const reason = messageOf(error);
      this.#options.warn("cannot ask the cluster for its nodes; assuming that the node exists", {
        node: nodeId,
        reason,
      });
      return true;
    }
  }

  /**
   * Read from the Node itself each time, because another machine may be set up under its name. The machine is unknown
   * if two Nodes share the id.
   */
  async machineOf(nodeId: string, { signal }: CallContext): Promise<string | undefined> {
    const names = this.#known.get(nodeId) ?? [];
    if (names.length !== 1) return undefined;
    const { api, clock, warn } = this.#options;
    using limited = limitSignal(clock, signal, timeoutMs, new Error("it takes too long"));
    try {
      const path = `${nodesPath}/${names[0]}`;
      return parseNode(await api.request<RawNode>({ method: "GET", path, signal: limited.signal })).machine;
    } catch (error) {
      signal.throwIfAborted();
      const reason = messageOf(error);
      warn("cannot ask the cluster for a node's machine; skipping the comparison", { node: nodeId, reason });
      return undefined;
    }
  }

  /** Runs one list at a time; concurrent callers share its result. */
  async #list(): Promise<void> {
    await this.#listing.run(() => this.#listOnce());
  }

  async #listOnce(): Promise<void> {
    const { api, clock, driverName } = this.#options;
    using limited = limitSignal(
      clock,
      new AbortController().signal,
      timeoutMs,
      new Error("it takes too long"),
    );
    const nodes = await listKept(
      api,
      { path: csiNodesPath, signal: limited.signal },
      (raw: RawCsiNode) => parseCsiNode(raw, driverName),
    );
    const known = new Map<string, string[]>();
    for (const { name, nodeId } of nodes) {
      if (nodeId !== undefined) known.set(nodeId, [...known.get(nodeId) ?? [], name]);
    }
    this.#known = known;
    this.#listedMs = clock.monotonicMs();
  }
}
