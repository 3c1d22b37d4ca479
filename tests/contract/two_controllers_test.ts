// Two controllers at once on one router whose sessions take turns between the statements of a line: what a rolling update is,
// and a leader that was taken for dead. MATRIX_ALL=1 makes five times as many
// calls, TWO_CONTROLLERS_CALLS says how many; TWO_CONTROLLERS_SEED draws the same ones.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { CsiClients } from "../../src/csi/server/client.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import { SeededRandom } from "../fakes/random.ts";
import { create, publishRequest, state } from "../support/controller_calls.ts";
import { environmentNumber, wantsAll } from "../support/matrix.ts";
import { type Stack, startStack } from "../support/stack.ts";

type ControllerClient = CsiClients["controller"];

const calls = environmentNumber("TWO_CONTROLLERS_CALLS", wantsAll ? 10_000 : 2_000);
const seed = environmentNumber("TWO_CONTROLLERS_SEED", Math.floor(Math.random() * 2 ** 31));
/** Few volumes and many callers, so that both controllers are often at the same one. */
const [volumeCount, atOnce] = [4, 6];
const nodes = ["node-1", "node-2", "node-3"];

/** What a caller may be told instead of OK: nothing that reads as a fault of the driver's. */
const refusals = new Set([status.FAILED_PRECONDITION, status.ABORTED, status.UNAVAILABLE]);

/** What is known of one volume and one node. */
interface Holding {
  /** What the node was told, while nobody has asked for the end of it. */
  nqn: string | undefined;
  /** How often somebody has begun, and ended, to ask for that. */
  endsBegun: number;
  endsDone: number;
}

/** Calls at random, and what must hold of their answers whatever else goes on. */
class Mixture {
  readonly random = new SeededRandom(seed);
  /** How often calls were answered how. */
  readonly answers = new Map<string, number>();
  /** The node that was told an NQN. */
  readonly #reported = new Map<string, string>();
  readonly #holdings = new Map<string, Holding>();
  readonly #stack: Stack;
  readonly #controllers: readonly ControllerClient[];
  readonly #volumes: readonly string[];

  constructor(stack: Stack, controllers: readonly ControllerClient[], volumes: readonly string[]) {
    this.#stack = stack;
    this.#controllers = controllers;
    this.#volumes = volumes;
  }

  async call(): Promise<void> {
    const volumeId = this.#pick(this.#volumes);
    const nodeId = this.#pick(nodes);
    const what = this.random.fraction();
    if (what < 0.45) await this.#publish(volumeId, nodeId);
    else if (what < 0.85) await this.#unpublish(volumeId, [nodeId]);
    else if (what < 0.88) await this.#unpublish(volumeId, nodes);
    else if (what < 0.94) await this.#ask("list", (one) => one.call("ListVolumes", {}));
    else await this.#ask("get", (one) => one.call("ControllerGetVolume", { volumeId }));
  }

  async #publish(volumeId: string, nodeId: string): Promise<void> {
    const holding = this.#holding(volumeId, nodeId);
    const { endsDone } = holding;
    const request = publishRequest(volumeId, nodeId);
    const answer = await this.#ask("publish", (one) => one.call("ControllerPublishVolume", request));
    if (answer === undefined) return;
    const nqn = answer.publishContext["nqn"]!;
    const first = this.#reported.get(nqn) ?? nodeId;
    assert.equal(nodeId, first, `${nqn} was told to ${first} and to ${nodeId}`);
    this.#reported.set(nqn, nodeId);
    // What was asked to end meanwhile may have ended since.
    if (holding.endsBegun !== endsDone) return;
    holding.nqn = nqn;
    const holders = nodes.filter((node) => this.#holding(volumeId, node).nqn !== undefined);
    assert.deepEqual(holders, [nodeId], `${volumeId} has two holders`);
  }

  /** All nodes are asked for by an empty node id. */
  async #unpublish(volumeId: string, of: readonly string[]): Promise<void> {
    const holdings = of.map((nodeId) => this.#holding(volumeId, nodeId));
    const nqns = holdings.flatMap(({ nqn }) => nqn ?? []);
    for (const holding of holdings) {
      holding.nqn = undefined;
      holding.endsBegun++;
    }
    const request = { volumeId, nodeId: of.length === 1 ? of[0]! : "" };
    const answer = await this.#ask("unpublish", (one) => one.call("ControllerUnpublishVolume", request));
    for (const holding of holdings) holding.endsDone++;
    if (answer === undefined) return;
    const exported = this.#stack.simulator.model.exports.list();
    for (const nqn of nqns) assert.ok(!exported.includes(nqn), `${nqn} is exported after an OK to its end`);
  }

  #holding(volumeId: string, nodeId: string): Holding {
    const key = `${volumeId} ${nodeId}`;
    const holding = this.#holdings.get(key) ?? { nqn: undefined, endsBegun: 0, endsDone: 0 };
    this.#holdings.set(key, holding);
    return holding;
  }

  async #ask<T>(what: string, call: (controller: ControllerClient) => Promise<T>): Promise<T | undefined> {
    try {
      const answer = await call(this.#pick(this.#controllers));
      this.#count(`${what} OK`);
      return answer;
    } catch (error) {
      const { code, details } = error as { code: status; details: string };
      assert.ok(refusals.has(code), `${what}: ${status[code]} ${details}`);
      this.#count(/was changed at the same time/.test(details) ? "came second" : `${what} ${status[code]}`);
      return undefined;
    }
  }

  #count(what: string): void {
    this.answers.set(what, (this.answers.get(what) ?? 0) + 1);
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.random.fraction() * list.length)]!;
  }
}

Deno.test(`no volume ever has two holders under ${calls} calls of two controllers, by seed ${seed}`, async () => {
  await using stack = await startStack({ simulator: { behaviours: { interleave: true } } });
  const volumes: string[] = [];
  for (let index = 0; index < volumeCount; index++) volumes.push(await create(stack, `pvc-${index}`));
  const controllers = [stack.clients.controller, (await stack.another()).clients.controller];
  const mixture = new Mixture(stack, controllers, volumes);
  let left = calls;
  const call = async () => {
    while (left-- > 0) await mixture.call();
  };
  await Promise.all(Array.from({ length: atOnce }, call));
  for (const [what, least] of [["publish OK", 20], ["unpublish OK", 20], ["came second", 1000]] as const) {
    assert.ok((mixture.answers.get(what) ?? 0) > calls / least, JSON.stringify([...mixture.answers]));
  }
  for (const disk of (await state(stack)).disks.filter(({ slot }) => volumes.includes(slot))) {
    const parsed = parseComment(String(disk["comment"]));
    assert.ok(parsed.state === "record" && parsed.comment.record.holders.length <= 1, disk.slot);
  }
});
