import type { Network } from "../../host/network.ts";
import { discover } from "../../nvme/discover.ts";
import { VolumeError } from "../../volume/errors.ts";
import { type NodeParts, openNodeWorld } from "../serve/node.ts";
import type { NodeCheckSeams } from "../../doctor/node/check.ts";
import type { NodeCheckRequest } from "./options.ts";

/** What a check-up of this machine needs: its own kernel and tools, and the node service's view of volumes. */
export function nodeCheckSeams(
  options: NodeCheckRequest,
  parts: NodeParts,
  network: Network,
): NodeCheckSeams {
  const { files, processes, paths } = parts;
  return {
    files,
    processes,
    network,
    paths,
    world: worldOrReason(options, parts),
    discover: async (at, host, context) =>
      (await discover({ ...at, ...host }, context)).map(({ nqn }) => nqn),
  };
}

function worldOrReason({ config }: NodeCheckRequest, parts: NodeParts): NodeCheckSeams["world"] {
  try {
    return openNodeWorld(config, parts);
  } catch (error) {
    if (VolumeError.is(error)) return error.message;
    throw error;
  }
}
