import assert from "node:assert/strict";
import { Kubelet } from "./kubelet.ts";

const id = "pvc-1";

/** Whether a kubelet unstages after these answers to calls to stage. */
function unstagesAfter(...errors: readonly (string | undefined)[]): boolean {
  const kubelet = new Kubelet();
  for (const error of errors) kubelet.answered("stage", id, error);
  return kubelet.unstages(id);
}

Deno.test("a kubelet unstages what may be staged, and nothing after a final error", () => {
  assert.deepEqual([unstagesAfter(), unstagesAfter(undefined), unstagesAfter("unavailable")], [
    false,
    true,
    true,
  ]);
  assert.deepEqual([unstagesAfter("precondition"), unstagesAfter("busy", "precondition")], [false, false]);
});

Deno.test("a kubelet goes on to unstage what was staged before a final error", () => {
  assert.equal(unstagesAfter(undefined, "precondition"), true);
});

Deno.test("a kubelet takes a volume from its pod where it may be there", () => {
  const unpublishes = (...errors: readonly (string | undefined)[]) => {
    const kubelet = new Kubelet();
    for (const error of errors) kubelet.answered("publish", id, error);
    return kubelet.unpublishes(id);
  };
  assert.deepEqual([unpublishes(undefined), unpublishes("busy"), unpublishes("precondition")], [
    true,
    true,
    false,
  ]);
});

Deno.test("a kubelet tries to unstage until that is done", () => {
  const kubelet = new Kubelet();
  kubelet.answered("stage", id, undefined);
  kubelet.answered("unstage", id, "unavailable");
  assert.equal(kubelet.unstages(id), true);
  kubelet.answered("unstage", id, undefined);
  assert.equal(kubelet.unstages(id), false);
});

Deno.test("a kubelet stages no volume again that it has staged, until an unstage fails or it starts anew", () => {
  const kubelet = new Kubelet();
  const stages = () => kubelet.stages(id);
  assert.equal(stages(), true);
  kubelet.answered("stage", id, undefined);
  assert.equal(stages(), false);
  kubelet.answered("unstage", id, "in-use");
  assert.equal(stages(), true);
  kubelet.answered("stage", id, "precondition");
  assert.deepEqual([stages(), kubelet.unstages(id)], [true, false]);
  kubelet.answered("stage", id, undefined);
  kubelet.restarted();
  kubelet.answered("stage", id, "precondition");
  assert.deepEqual([stages(), kubelet.unstages(id)], [true, true]);
});
