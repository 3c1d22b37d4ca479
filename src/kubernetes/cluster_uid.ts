import { VolumeError } from "../volume/errors.ts";
import type { Clock } from "../volume/ports/ports.ts";
import type { KubernetesApi, Metadata } from "./api.ts";

/** How often the API server is asked before a controller gives its start up, and how long it waits in between. */
const attempts = 12;
const pauseMs = 5_000;

/**
 * What tells this cluster from any other one: the uid of its namespace `kube-system`, which is as old as the cluster.
 *
 * @throws {VolumeError} unavailable when the API server does not tell within a minute; whatever the signal's reason is
 */
export async function readClusterUid(api: KubernetesApi, clock: Clock, signal: AbortSignal): Promise<string> {
  for (let attempt = 1;; attempt++) {
    try {
      const path = "/api/v1/namespaces/kube-system";
      const { metadata } = await api.request<{ metadata?: Metadata }>({ method: "GET", path, signal });
      if (metadata?.uid) return metadata.uid;
      throw new Error("the namespace kube-system has no uid");
    } catch (error) {
      signal.throwIfAborted();
      if (attempt < attempts) await clock.sleep(pauseMs, signal);
      else {
        const reason = error instanceof Error ? error.message : String(error);
        throw new VolumeError(
          "unavailable",
          `Cannot tell which cluster this is as its API server does not say: ${reason}; give --cluster-id, or let the ` +
            "service account get the namespace kube-system",
          { cause: error },
        );
      }
    }
  }
}
