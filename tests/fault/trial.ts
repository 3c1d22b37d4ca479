// One call with one fault: whatever its first answer is, trying again succeeds, and no answer is untrue.
import assert from "node:assert/strict";
import { codeOf } from "../../src/csi/server/client.ts";
import { systemClock } from "../../src/host/clock.ts";
import { type Stack, type StackOptions, startStack } from "../support/stack.ts";
import type { Fault, Healing } from "./faults.ts";
import { type Attempt, made, type Rpc } from "./rpcs.ts";
import { Scene } from "./scene.ts";

const tries = 12;
const defaultMs = 5000;

/** The answers about a router that cannot be reached, or that has changed meanwhile. */
const honest: readonly string[] = ["UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED"];

/** A router and a driver for many trials, each of which finds what the earlier ones left. */
export class Worker {
  readonly #options: readonly StackOptions[];
  #stack: Stack | undefined;
  #scene: Scene | undefined;

  /** @param options options of the stack; later ones override earlier ones */
  constructor(...options: readonly (StackOptions | undefined)[]) {
    this.#options = options.filter((option) => option !== undefined);
  }

  /** Runs a trial. The router is replaced before and after a trial that asks for it, and after a trial that failed. */
  async run(work: (scene: Scene) => Promise<string | void>, alone = false): Promise<string | void> {
    if (alone) await this.close();
    this.#stack ??= await startStack({
      ...Object.assign({}, ...this.#options),
      flags: this.#options.flatMap(({ flags = [] }) => flags),
      simulator: {
        ...Object.assign({}, ...this.#options.map(({ simulator }) => simulator)),
        behaviours: Object.assign({}, ...this.#options.map(({ simulator }) => simulator?.behaviours)),
      },
    });
    this.#scene ??= await Scene.open(this.#stack);
    try {
      const because = await work(this.#scene);
      if (alone) await this.close();
      return because;
    } catch (error) {
      await this.#abandon(error);
      throw error;
    }
  }

  async close(): Promise<void> {
    const stack = this.#stack;
    this.#stack = this.#scene = undefined;
    await stack?.[Symbol.asyncDispose]();
  }

  /** Violations that appear while the router is closed are reported with the error of the failed trial. */
  async #abandon(error: unknown): Promise<void> {
    try {
      await this.close();
    } catch (other) {
      throw new SuppressedError(other, error);
    }
  }
}

/** The verbs of commands that change something. */
const changing = /\b(add|set|remove|copy)\b/;

/** The commands of a call without faults: whether each changes something. */
export async function commandsOf(rpc: Rpc): Promise<boolean[]> {
  let commands: boolean[] = [];
  const worker = new Worker(rpc.options);
  await worker.run(async (scene) => {
    const attempt = await rpc.prepare(scene);
    const { journal } = scene.simulator;
    journal.clear();
    await made(scene, attempt);
    commands = journal.list().map(({ command }) => changing.test(command));
    await scene.assertAsReported();
  });
  await worker.close();
  return commands;
}

/** Strikes the n-th command of a call with a fault, and repeats the call until it is answered OK. */
export async function tryUnder(worker: Worker, fault: Fault, rpc: Rpc, nth: number): Promise<string | void> {
  return await worker.run(async (scene) => {
    const attempt = await rpc.prepare(scene);
    const heal = await fault.strike(scene, nth, attempt);
    const because = await converge(scene, rpc, attempt, fault, heal);
    await heal?.();
    await scene.assertAsReported();
    return because;
  }, fault.alone === true || rpc.alone === true);
}

/**
 * Repeats a call until it is answered OK, as the sidecars do, with longer and longer pauses. When the driver says that
 * a person must delete something, this function deletes it and returns the reason.
 */
export async function converge(
  scene: Scene,
  rpc: Rpc,
  attempt: Attempt,
  { codes = [], firstMs = defaultMs, strands }: Partial<Fault> = {},
  heal: Healing = undefined,
): Promise<string | undefined> {
  const said: string[] = [];
  let because: string | undefined;
  for (let count = 1; count <= tries; count++) {
    try {
      await attempt.call(scene.clients, count === 1 ? firstMs : defaultMs);
      return because;
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw error;
      const { message } = error as Error;
      said.push(`${code}: ${message.slice(0, 400)}`);
      const strand = [strands, rpc.strands].find((one) => one?.says.test(message));
      if (strand !== undefined && count > 2) {
        because = strand.because;
        await removeOrphan(scene, message);
        continue;
      }
      if (strand !== undefined) codes = [...codes, "FAILED_PRECONDITION"];
      const known: readonly string[] = [...honest, ...codes, ...rpc.codes ?? []];
      assert.ok(known.includes(code), `answered ${said.at(-1)}`);
    }
    if (count === 2) await heal?.();
    await systemClock.sleep(Math.min(1000, 15 * 2 ** count));
  }
  assert.fail(`no OK in ${tries} tries:\n${[...new Set(said)].join("\n")}`);
}

/** Deletes an object that was never completed and that Kubernetes does not know. */
async function removeOrphan(scene: Scene, message: string): Promise<void> {
  const id = /(?:snapshot|volume)=(\S+?)(?:[\s;:]|$)/.exec(message)?.[1] ?? assert.fail(message);
  assert.ok(!scene.volumes.has(id) && !scene.snapshots.has(id) && scene.disk(id) === undefined, message);
  assert.ok(scene.pathsOf(id).length > 0, message);
  const { controller } = scene.clients;
  if (id.startsWith("snap-")) await controller.call("DeleteSnapshot", { snapshotId: id });
  else await controller.call("DeleteVolume", { volumeId: id });
  assert.deepEqual(scene.pathsOf(id), []);
}
