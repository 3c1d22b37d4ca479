import type { ConnectedApi, KubernetesApi } from "./api.ts";
import { maxConnections } from "./client.ts";
import { LimitedApi } from "./limited_api.ts";

/** Connections that only the Lease uses. */
const leaseConnections = 2;

/**
 * The maximum number of concurrent list pages of the loops. With the list of volumes, which calls share, they take at
 * most half of the connections.
 */
const maxPages = maxConnections / 2 - 1;

/** The API server as each kind of work reaches it: slow answers to one must not hold up the other. */
export class Connections {
  readonly #clients: readonly ConnectedApi[];
  readonly calls: KubernetesApi;
  /** For the lists of the loops, for which nobody waits. */
  readonly lists: KubernetesApi;
  /** For the Lease, whose renewal must come in time. */
  readonly lease: KubernetesApi;

  constructor(client: ConnectedApi) {
    const lease = client.apart(leaseConnections);
    this.#clients = [client, lease];
    this.calls = client;
    this.lists = new LimitedApi(client, maxPages);
    this.lease = lease;
  }

  /** Closes the idle connections. */
  close(): void {
    for (const client of this.#clients) client.close();
  }
}
