import "../host/no_deprecations.ts";
import { KubeConfig } from "@kubernetes/client-node";
import type { ClusterAccess } from "./access.ts";

/**
 * Access by the current context of a kubeconfig, with every kind of credentials that the client library knows.
 *
 * @throws {Error} when the file cannot be read, or its context names no cluster
 */
export function kubeconfigAccess(path: string): ClusterAccess {
  const config = new KubeConfig();
  config.loadFromFile(path);
  const cluster = config.getCurrentCluster();
  if (cluster?.server === undefined) throw new Error("its current context names no cluster");
  return {
    server: new URL(cluster.server),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace?.trim() ?? "",
    hasProxy: Boolean(cluster.proxyUrl),
    async apply(options) {
      options.headers ??= {};
      await config.applyToHTTPSOptions(options as Parameters<KubeConfig["applyToHTTPSOptions"]>[0]);
    },
  };
}
