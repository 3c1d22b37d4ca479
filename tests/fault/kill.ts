// Kills the controller with SIGKILL at every boundary between two router commands of every call. A new process that
// gets the call again completes it, and nothing is left over.
import assert from "node:assert/strict";
import { systemClock } from "../../src/host/clock.ts";
import type { Simulator } from "../../src/simulator/simulator.ts";
import type { Controllers } from "./controllers.ts";
import { beforeCommand } from "./faults.ts";
import type { Rpc } from "./rpcs.ts";
import { converge, type Worker } from "./trial.ts";

/** The state of a command when the controller that sent it is killed. */
export interface Moment {
  readonly name: string;
  /** What the router does with the command. */
  readonly hold: (simulator: Simulator, nth: number) => void;
  /** How long the router takes to do it, in milliseconds. */
  readonly releaseMs: number;
  /** Whether this moment leaves the router in a state that no other moment produces. */
  readonly isItsOwn: (nth: number, changes: boolean) => boolean;
}

const lateMs = 60;

/** The moments around each command. The moment before a command is the moment after the answer to the previous one. */
export const moments: readonly Moment[] = [
  {
    name: "killed before the command ran",
    hold: ({ faults }, nth) => faults.arm({ match: "", nth, times: 1, action: "hang", value: undefined }),
    releaseMs: 0,
    isItsOwn: (nth) => nth === 1,
  },
  {
    name: "killed before it ran, it ran later",
    hold: ({ faults }, nth) => faults.arm({ match: "", nth, times: 1, action: "delay", value: lateMs }),
    releaseMs: 2 * lateMs,
    isItsOwn: (_nth, changes) => changes,
  },
  {
    name: "killed after it ran, before its reply",
    hold: ({ faults }, nth) => faults.arm({ match: "", nth, times: 1, action: "hang", value: "after" }),
    releaseMs: 0,
    isItsOwn: (_nth, changes) => changes,
  },
];

/** Kills the controller at the n-th command of a call, and lets a new one make the call again. */
export async function killAt(
  worker: Worker,
  controllers: Controllers,
  rpc: Rpc,
  moment: Moment,
  nth: number,
): Promise<string | void> {
  return await worker.run(async (scene) => {
    const attempt = await rpc.prepare(scene);
    const victim = await controllers.take();
    const reached = Promise.withResolvers<void>();
    beforeCommand(scene.simulator, nth, reached.resolve);
    moment.hold(scene.simulator, nth);
    const call = attempt.call(victim.clients, 20_000).then(() => "answered", () => "failed");
    await Promise.race([reached.promise, call]);
    // The command runs in the following turns of the event loop.
    await systemClock.sleep(1);
    await victim.kill();
    assert.equal(await call, "failed", `the call was answered before its command ${nth}`);
    await systemClock.sleep(moment.releaseMs);
    scene.simulator.faults.clear();
    const fresh = await controllers.takeNew();
    const because = await scene.through(fresh.clients, () => converge(scene, rpc, attempt));
    await scene.assertAsReported();
    // The controller that completed the call is the next one to be killed.
    controllers.giveBack(fresh);
    return because;
  }, rpc.alone === true);
}
