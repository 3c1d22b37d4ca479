import { directoryNodeDeps } from "../../../../src/cli/serve/directory_node.ts";
import { systemNodeParts } from "../../../../src/cli/serve/node.ts";
import { systemClock } from "../../../../src/host/clock.ts";
import { DirectoryNode } from "../../../../src/node/directory/directory_node.ts";
import type { PublishDirectoryRequest } from "../../../../src/node/directory/publish.ts";
import type { VolumePath } from "../../../../src/node/directory/unpublish.ts";
import { callContext } from "../kill/node.ts";

/** A call of the node of directories, with all that it takes. */
export type DirectoryCall =
  | { readonly method: "publish"; readonly request: PublishDirectoryRequest }
  | { readonly method: "unpublish"; readonly request: VolumePath };

/** A node as a process that has just started has it, on this machine's kernel and tools. */
export function freshDirectoryNode(stateDirectory: string): DirectoryNode {
  const config = {
    nodeId: "node-1",
    connector: "nvme-tcp",
    loopBacking: "",
    stateDirectory,
    maxVolumesPerNode: 0,
    nqnPrefix: "",
    topology: {},
    fenceIntervalMs: 30_000,
    fstrimIntervalMs: 0,
    fenceSettleMs: 120_000,
    deviceLayer: "none",
  } as const;
  const notes = { info() {}, warn() {} };
  return new DirectoryNode(directoryNodeDeps(config, systemNodeParts(systemClock, notes), notes));
}

/** Makes a call. */
export async function callDirectoryNode(
  service: DirectoryNode,
  { method, request }: DirectoryCall,
): Promise<void> {
  const context = callContext();
  if (method === "publish") return await service.publish(request, context);
  await service.unpublish(request, context);
}

/** Starts a node as its service does after a kill, and makes a call while the rest of the start goes on. */
export async function restartAndCall(stateDirectory: string, call?: DirectoryCall): Promise<void> {
  const service = freshDirectoryNode(stateDirectory);
  await service.removeHelpers();
  const outcomes = await Promise.allSettled([
    service.releaseUnused(new AbortController().signal),
    call === undefined ? undefined : callDirectoryNode(service, call),
  ]);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}
