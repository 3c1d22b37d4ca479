import type { NodeDirectory } from "../../volume/ports/cluster_ports.ts";

/** The nodes that were named on the command line: all there is where there is no cluster to ask. */
export function fixedNodes(nodeIds: readonly string[]): NodeDirectory {
  const known = new Set(nodeIds);
  return { isKnown: (nodeId) => Promise.resolve(known.has(nodeId)) };
}
