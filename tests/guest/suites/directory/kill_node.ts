import { directoryNodeDeps } from "../../../../src/cli/serve/directory_node.ts";
import { systemNodeParts } from "../../../../src/cli/serve/node.ts";
import { systemClock } from "../../../../src/host/clock.ts";
import { DirectoryNode } from "../../../../src/node/directory/directory_node.ts";
import type { PublishDirectoryRequest } from "../../../../src/node/directory/publish.ts";
import type { StageDirectoryRequest } from "../../../../src/node/directory/stage.ts";
import type { VolumePath } from "../../../../src/node/directory/unstage.ts";
import { callContext } from "../kill/node.ts";

/** A call of the node of directories, with all that it takes. */
export type DirectoryCall =
  | { readonly method: "stage"; readonly request: StageDirectoryRequest }
  | { readonly method: "publish"; readonly request: PublishDirectoryRequest }
  | { readonly method: "unpublish"; readonly request: VolumePath }
  | { readonly method: "unstage"; readonly request: VolumePath };

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
  switch (method) {
    case "stage":
      return await service.stage(request, context);
    case "publish":
      return await service.publish(request, context);
    case "unpublish":
      return await service.unpublish(request, context);
    case "unstage":
      return await service.unstage(request, context);
  }
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
