import type { Intent } from "../../volume/model/staging/state.ts";
import type { Target } from "../../volume/ports/node_ports.ts";

/** What a volume's connection is made to, and how, as this node has recorded it. */
export function targetOf({ nqn, addresses, port, connection }: Intent): Target {
  return { nqn, addresses, port, ...connection };
}
