import type { CallContext } from "../../volume/ports/system.ts";
import type { Connection } from "../../volume/ports/node_ports.ts";
import type { NodeDeps } from "../deps.ts";

/** How long a read is used. The next check finds a connection that is lost meanwhile. */
const keptMs = 1_000;

/** The connections of all volumes, read together: a read of one volume's has to list those of all. */
export class RecentConnections {
  readonly #deps: NodeDeps;
  #read: Promise<ReadonlyMap<string, readonly Connection[]>> | undefined;
  #atMs = 0;

  constructor(deps: NodeDeps) {
    this.#deps = deps;
  }

  /** The paths to a subsystem as they were within the last second, in any state; empty when it was not connected. */
  async to(nqn: string, context: CallContext): Promise<readonly Connection[]> {
    const { clock, connector } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (this.#read === undefined || nowMs - this.#atMs >= keptMs) {
      this.#read = connector.allConnections(context);
      this.#atMs = nowMs;
    }
    return (await this.#read).get(nqn) ?? [];
  }
}
