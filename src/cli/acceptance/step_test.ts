import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/clock.ts";
import { VolumeError } from "../../volume/errors.ts";
import { NotHere, runGroup, type Step } from "./step.ts";

/** Runs steps, each of which ends as its entry says, and returns the results and what else was done. */
async function resultsOf(
  ends: readonly (Error | string)[],
  signal = new AbortController().signal,
): Promise<string[]> {
  const done: string[] = [];
  const steps = ends.map((end, index): Step => ({
    step: `${index + 1}`,
    promise: "it holds",
    run: () => typeof end === "string" ? Promise.resolve(end) : Promise.reject(end),
  }));
  const group = { steps, end: () => Promise.resolve(void done.push("end")) };
  await runGroup(group, {
    clock: new FakeClock(),
    signal,
    countCommands: () => 0,
    begin: () => {},
    report: ({ result, note }) => void done.push(`${result} ${note}`),
  });
  return done;
}

Deno.test("runGroup() reports every step, and ends the group", async () => {
  assert.deepEqual(await resultsOf(["a", "b"]), ["pass a", "pass b", "end"]);
});

Deno.test("what builds on a step that failed is not here", async () => {
  const failed = "it builds on a step that failed: 1";
  assert.deepEqual(await resultsOf([new Error("broken"), "b", "c"]), [
    "fail broken",
    `not here ${failed}`,
    `not here ${failed}`,
    "end",
  ]);
});

Deno.test("a step that is not here stops none behind it, unless they build on it", async () => {
  assert.deepEqual(await resultsOf([new NotHere("no Btrfs"), "b"]), ["not here no Btrfs", "pass b", "end"]);
  assert.deepEqual(await resultsOf([new NotHere("no host", true), "b"]), [
    "not here no host",
    "not here no host",
    "end",
  ]);
});

Deno.test("runGroup() ends the group when it is stopped, and says so", async () => {
  const stop = new AbortController();
  stop.abort(new VolumeError("cancelled", "Stopped by SIGINT"));
  await assert.rejects(resultsOf(["a"], stop.signal), /Stopped by SIGINT/);
});
