import type { StagingState } from "../../volume/model/staging_state.ts";
import type { Target } from "../../volume/ports/node_ports.ts";

/** What a volume's connection is made to, and how, as this node has recorded it. */
export function targetOf(stagingState: StagingState): Target {
  const { nqn, addresses, port, namespaceBytes, connection } = stagingState;
  return { nqn, addresses, port, sizeBytes: namespaceBytes, ...connection };
}
