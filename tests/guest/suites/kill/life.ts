import assert from "node:assert/strict";
import { VolumeError, type VolumeErrorKind } from "../../../../src/volume/errors.ts";
import { describeBoundary } from "./boundaries.ts";
import { type Kill, shape } from "./kills.ts";
import { callNode, freshNode, type NodeCall } from "./node.ts";
import type { Step } from "./steps.ts";
import type { Victims } from "./victims.ts";
import type { Volume } from "./volume.ts";

/** Calls of a volume's life in which the node may be killed, in their order. */
export const operations = [
  "stage, new volume",
  "publish",
  "expand",
  "unpublish",
  "unstage",
  "stage, data on it",
  "publish, read-only",
  "stage, an older epoch there",
] as const;
/** One of {@linkcode operations}. */
export type Operation = typeof operations[number];

/** What a life came to. */
export interface LifeStory {
  kills: number;
  /** Answers that the retries got before they went through. */
  readonly refusals: Map<VolumeErrorKind, number>;
  slowestMs: number;
}

/** Longest until a call goes through that is made again and again, in milliseconds. */
const convergenceMs = 240_000;
const pauseMs = 200;
/** What an orchestrator comes back from by itself; anything else is for people. */
const passing: readonly VolumeErrorKind[] = ["busy", "unavailable", "in-use", "deadline"];

/** Makes a call of a life, in its own way; `giveUp` is the call that would undo it. */
type Maker = (operation: Operation, call: NodeCall, giveUp?: NodeCall) => Promise<void>;

/** The life of a volume on a node, from blank to gone, whose process is killed on the way. */
export class Life {
  readonly story: LifeStory = { kills: 0, refusals: new Map(), slowestMs: 0 };
  readonly #volume: Volume;
  readonly #statePath: string;
  readonly #make: Maker;

  private constructor(volume: Volume, statePath: string, make: Maker) {
    this.#volume = volume;
    this.#statePath = statePath;
    this.#make = make;
  }

  /** A life in which nobody is killed; answers the steps of its calls. */
  static async count(
    volume: Volume,
    statePath: string,
    victims: Victims<NodeCall>,
  ): Promise<ReadonlyMap<Operation, readonly Step[]>> {
    const steps = new Map<Operation, readonly Step[]>();
    const life = new Life(volume, statePath, async (operation, call) => {
      steps.set(operation, await victims.count(call));
    });
    await life.#live();
    return steps;
  }

  /** A life with these kills, one a call at most. */
  static async withKills(
    volume: Volume,
    statePath: string,
    victims: Victims<NodeCall>,
    kills: readonly Kill<Operation>[],
  ): Promise<LifeStory> {
    const of = new Map(kills.map((kill) => [kill.operation, kill]));
    const life: Life = new Life(volume, statePath, async (operation, call, giveUp) => {
      const kill = of.get(operation);
      if (kill === undefined) await life.#converge(call);
      else await life.#killed(victims, kill, call, giveUp);
    });
    await life.#live();
    return life.story;
  }

  async #live(): Promise<void> {
    const volume = this.#volume;
    await this.#make("stage, new volume", volume.call("stage"), volume.call("unstage"));
    const filesystem = await volume.filesystemId();
    await volume.write();
    await this.#make("publish", volume.call("publish"), volume.call("unpublish"));
    await volume.write();
    await volume.verify("target");
    volume.grow();
    await this.#make("expand", volume.call("expand"));
    await volume.assertGrown();
    await volume.verify("target");
    await this.#make("unpublish", volume.call("unpublish"));
    await volume.write();
    await this.#make("unstage", volume.call("unstage"));
    await this.#assertGone();

    volume.nextEpoch();
    await this.#make("stage, data on it", volume.call("stage"), volume.call("unstage"));
    await volume.verify("staging");
    await this.#make("publish, read-only", volume.call("publish", true), volume.call("unpublish"));
    await volume.verify("target");
    await this.#converge(volume.call("unpublish"));

    // Taken from this node, which was not asked, and given to it again.
    volume.nextEpoch();
    await this.#make("stage, an older epoch there", volume.call("stage"), volume.call("unstage"));
    await volume.verify("staging");
    await this.#converge(volume.call("unstage"));
    await this.#assertGone();
    assert.equal(await volume.filesystemId(), filesystem, "the volume was formatted again");
    await volume.assertClean();
    volume.remove();
  }

  async #assertGone(): Promise<void> {
    assert.deepEqual(await this.#volume.traces(), [], "something of the volume is left");
    this.#volume.removeStaging();
  }

  async #killed(
    victims: Victims<NodeCall>,
    kill: Kill<Operation>,
    call: NodeCall,
    giveUp?: NodeCall,
  ): Promise<void> {
    const { boundary, steps } = kill;
    const begun = await victims.kill(call, boundary, steps[boundary.step - 1]?.childMs);
    this.story.kills++;
    try {
      const expected = steps.slice(0, boundary.step).map(({ name }) => shape(name));
      assert.deepEqual(
        begun.map(shape).slice(0, steps.length),
        expected,
        "its steps were others than counted",
      );
      if (kill.then === "give up" && giveUp !== undefined) {
        await this.#converge(giveUp);
        if (giveUp.method === "unstage") this.#volume.removeStaging();
      }
      const formats = await this.#converge(call);
      if (call.method === "stage") assertFormats(formats, kill, begun);
    } catch (error) {
      const when = describeBoundary(boundary, steps);
      throw new Error(`${this.#volume.kind}: ${kill.operation}, killed ${when}, ${kill.then}`, {
        cause: error,
      });
    }
  }

  /** Makes a call again and again, each time by a fresh node; answers how often a file system was made. */
  async #converge(call: NodeCall): Promise<number> {
    const started = performance.now();
    let formats = 0;
    for (;;) {
      const node = freshNode(this.#statePath);
      const { filesystems } = node.deps;
      const { format } = filesystems;
      filesystems.format = (...args) => {
        formats++;
        return format.apply(filesystems, args);
      };
      try {
        await callNode(node, call);
        this.story.slowestMs = Math.max(this.story.slowestMs, performance.now() - started);
        return formats;
      } catch (error) {
        const passes = error instanceof VolumeError && passing.includes(error.kind);
        if (!passes || performance.now() - started > convergenceMs) throw error;
        this.story.refusals.set(error.kind, (this.story.refusals.get(error.kind) ?? 0) + 1);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }
}

/** A mkfs that was not begun is made up for; one that ended is not repeated; of one that was killed, either. */
function assertFormats(formats: number, kill: Kill<Operation>, begun: readonly string[]): void {
  const { moment } = kill.boundary;
  const taken = moment === "before" ? begun.slice(0, -1) : begun;
  const at = taken.findIndex((name) => name.startsWith("mkfs."));
  const wanted = kill.steps.some(({ name }) => name.startsWith("mkfs.")) ? 1 : 0;
  const diedInIt = at === taken.length - 1 && moment === "child dies";
  const allowed = diedInIt ? [0, 1] : [at < 0 ? wanted : 0];
  assert.ok(allowed.includes(formats), `the retry formatted ${formats} times, not ${allowed.join(" or ")}`);
}
