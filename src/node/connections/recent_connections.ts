import type { CallContext } from "../../volume/ports/system.ts";
import type { Connection, FoundDevice } from "../../volume/ports/node_ports.ts";
import type { NodeDeps } from "../deps.ts";

/** How long a read is used, in milliseconds. The next one finds what is lost meanwhile. */
const keptMs = 1_000;

interface Read<Of> {
  readonly byNqn: Promise<ReadonlyMap<string, Of>>;
  readonly atMs: number;
}

/**
 * The connections and devices of all volumes, read together: a read of one volume's has to list those of all. Callers share
 * a read, so none may end it for the others.
 */
export class RecentConnections {
  readonly #deps: NodeDeps;
  #connections: Read<readonly Connection[]> | undefined;
  #devices: Read<FoundDevice> | undefined;

  constructor(deps: NodeDeps) {
    this.#deps = deps;
  }

  /** The paths to a subsystem as they were within the last second, in any state; empty when it was not connected. */
  async to(nqn: string): Promise<readonly Connection[]> {
    const read = (context: CallContext) => this.#deps.connector.allConnections(context);
    this.#connections = this.#kept(this.#connections, read);
    return (await this.#connections.byNqn).get(nqn) ?? [];
  }

  /** The device of a subsystem as it was within the last second; undefined when there was none, or a doubtful one. */
  async deviceOf(nqn: string): Promise<FoundDevice | undefined> {
    this.#devices = this.#kept(this.#devices, (context) => this.#deps.connector.allDevices(context));
    return (await this.#devices.byNqn).get(nqn);
  }

  #kept<Of>(
    before: Read<Of> | undefined,
    read: (context: CallContext) => Promise<ReadonlyMap<string, Of>>,
  ): Read<Of> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (before !== undefined && nowMs - before.atMs < keptMs) return before;
    const { signal } = new AbortController();
    return { byNqn: read({ requestId: "shared", signal }), atMs: nowMs };
  }
}
