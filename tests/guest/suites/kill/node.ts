import { openNodeDeps, systemNodeParts } from "../../../../src/cli/serve/node.ts";
import { systemClock } from "../../../../src/host/clock.ts";
import type { ExpandRequest } from "../../../../src/node/expand.ts";
import { NodeService } from "../../../../src/node/node_service.ts";
import type { PublishRequest } from "../../../../src/node/publish/publish.ts";
import type { StageRequest } from "../../../../src/node/stage/wish.ts";
import type { UnpublishRequest } from "../../../../src/node/publish/unpublish.ts";
import type { UnstageRequest } from "../../../../src/node/stage/unstage.ts";
import type { NodeDeps } from "../../../../src/node/deps.ts";
import type { CallContext } from "../../../../src/volume/ports/system.ts";

/** NQN prefix of every volume of these tests. */
export const nqnPrefix = "nqn.2000-02.com.mikrotik";

/** A call of the node, with all that it takes. */
export type NodeCall =
  | { readonly method: "stage"; readonly request: StageRequest }
  | { readonly method: "publish"; readonly request: PublishRequest }
  | { readonly method: "expand"; readonly request: ExpandRequest }
  | { readonly method: "unpublish"; readonly request: UnpublishRequest }
  | { readonly method: "unstage"; readonly request: UnstageRequest };

/** A node as a process that has just started has it: it knows nothing but what the kernel and the state files say. */
export interface FreshNode {
  readonly deps: NodeDeps;
  readonly service: NodeService;
}

/** Makes one on this machine's kernel and tools. */
export function freshNode(statePath: string): FreshNode {
  const config = {
    nodeId: "node-1",
    connector: "nvme-tcp",
    loopBacking: "",
    stateDirectory: statePath,
    maxVolumesPerNode: 0,
    nqnPrefix,
    topology: {},
    fenceIntervalMs: 30_000,
    fstrimIntervalMs: 0,
    fenceSettleMs: 120_000,
    deviceLayer: "none",
  } as const;
  const deps = openNodeDeps(config, systemNodeParts(systemClock, { warn() {} }));
  return { deps, service: new NodeService(deps) };
}

/** Makes a call. */
export async function callNode({ service }: FreshNode, { method, request }: NodeCall): Promise<void> {
  const context = callContext();
  switch (method) {
    case "stage":
      return await service.stage(request, context);
    case "publish":
      return await service.publish(request, context);
    case "expand":
      return void await service.expand(request, context);
    case "unpublish":
      return await service.unpublish(request, context);
    case "unstage":
      return await service.unstage(request, context);
  }
}

const callMs = 120_000;

/** A call with a deadline, as a server makes one. */
export function callContext(): CallContext {
  return { requestId: "test", signal: AbortSignal.timeout(callMs), deadlineMs: Date.now() + callMs };
}

/** A call of any node in one line of text; sizes are whole numbers there. */
export function formatCall(call: unknown): string {
  return JSON.stringify(call, (_key, value) => typeof value === "bigint" ? { bigint: String(value) } : value);
}

/** Reads {@linkcode formatCall}'s text. */
export function parseCall<Call = NodeCall>(text: string): Call {
  return JSON.parse(text, (_key, value) => typeof value?.bigint === "string" ? BigInt(value.bigint) : value);
}
