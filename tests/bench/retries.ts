import type { ControllerRpcs, IdentityRpcs, NodeRpcs } from "../../src/csi/generated/csi.ts";
import { codeOf, type CsiClients, type ServiceClient } from "../../src/csi/server/client.ts";
import type { Messages, Sent } from "../../src/csi/server/proto.ts";

/** Codes after which an orchestrator calls again, and succeeds in the end. */
const repeated = new Set(["UNAVAILABLE", "ABORTED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"]);

/** From the first refusal of a call until it must have been answered, in milliseconds. */
const retryLimitMs = 180_000;
const pauseMs = 300;

/** Makes each call again until it is answered, as the sidecars and the kubelet do, and takes its time. */
export class RetryingClients {
  readonly identity: Pick<ServiceClient<IdentityRpcs>, "call">;
  readonly controller: Pick<ServiceClient<ControllerRpcs>, "call">;
  readonly node: Pick<ServiceClient<NodeRpcs>, "call">;
  /** What each call took that was answered at once, in milliseconds, since this was last emptied. */
  readonly tookMs: number[] = [];
  /** Calls that were made again. */
  repeats = 0;

  constructor({ identity, controller, node }: CsiClients) {
    this.identity = this.#retrying(identity);
    this.controller = this.#retrying(controller);
    this.node = this.#retrying(node);
  }

  #retrying<Service extends Messages<Service>>(
    client: ServiceClient<Service>,
  ): Pick<ServiceClient<Service>, "call"> {
    return { call: (name, request) => this.#call(client, name, request) };
  }

  async #call<Service extends Messages<Service>, Name extends keyof Service & string>(
    client: ServiceClient<Service>,
    name: Name,
    request: Sent<Service[Name]["request"]>,
  ): Promise<Service[Name]["response"]> {
    const began = performance.now();
    for (let attempt = 0;; attempt++) {
      try {
        const answer = await client.call(name, request);
        if (attempt === 0) this.tookMs.push(performance.now() - began);
        return answer;
      } catch (error) {
        const isLate = performance.now() - began > retryLimitMs;
        if (isLate || !repeated.has(codeOf(error) ?? "")) throw error;
        this.repeats++;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }
}
