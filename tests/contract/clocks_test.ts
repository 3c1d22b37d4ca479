import assert from "node:assert/strict";
import { systemClock } from "../../src/host/clock.ts";
import { create, publishRequest } from "../support/controller_calls.ts";
import { startStack } from "../support/stack.ts";

const graceSeconds = 1;
/**
 * A clock that is an hour behind. A clock that is ahead cannot be tested this way: every deadline would have passed for
 * it.
 */
const behind = { ...systemClock, now: () => systemClock.now() - 3_600_000 };

Deno.test("another controller waits out a withdrawal, although one of the two clocks is an hour ahead", async () => {
  await using stack = await startStack({ flags: ["--unexport-grace", `${graceSeconds}s`] });
  const right = stack.clients.controller;
  const wrong = (await stack.another([], behind)).clients.controller;
  const volumeId = await create(stack, "pvc-1");
  const seconds = async (controller: typeof right, nodeId: string) => {
    const startedMs = performance.now();
    await controller.call("ControllerPublishVolume", publishRequest(volumeId, nodeId));
    return (performance.now() - startedMs) / 1000;
  };
  const unpublish = (controller: typeof right) =>
    controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "" });
  await seconds(right, "node-1");
  for (const [before, after] of [[right, wrong], [wrong, right]] as const) {
    await unpublish(before);
    const waited = await seconds(after, "node-2");
    assert.ok(waited >= graceSeconds - 0.1 && waited < graceSeconds * 10, `waited ${waited} s`);
  }
});
