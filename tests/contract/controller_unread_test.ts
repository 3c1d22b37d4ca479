// A controller that remembers what it wrote may skip the read before a change. What that comes to is in unread_calls_test, and
// what it costs in controller_bytes_test; here is what needs the whole driver.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { parseComment } from "../../src/volume/model/record.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import { cost, create, publishRequest, state } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { eventually } from "../support/eventually.ts";

/** A volume that a controller has published to node-1. */
async function published(stack: Stack) {
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-1");
  const publish = (nodeId = "node-1") =>
    controller.call("ControllerPublishVolume", publishRequest(volumeId, nodeId));
  const unpublish = () => controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
  const disk = async () => (await state(stack)).disks.find(({ slot }) => slot === volumeId)!;
  const isOff = async () => {
    const { comment, "nvme-tcp-export": exported } = await disk();
    const parsed = parseComment(String(comment));
    return !exported && parsed.state === "record" && parsed.comment.record.holders.length === 0;
  };
  await publish();
  return { volumeId, publish, unpublish, disk, isOff };
}

Deno.test("an error text is no end: a withdrawal that runs after it takes nothing from whoever was answered OK", async () => {
  await using stack = await startStack();
  const { publish, unpublish, disk } = await published(stack);
  await control(stack.simulator, "POST /faults", {
    match: "^/disk set",
    action: "error-late",
    value: "action timed out",
  });
  // It reads, and withdraws once more: what comes late finds another comment.
  await unpublish();
  const { publishContext } = await publish();
  // The withdrawal has come by now.
  await eventually(() =>
    stack.simulator.journal.list().some(({ outcome }) => outcome.startsWith("fault error-late"))
  );
  const { "nvme-tcp-export": exported, "nvme-tcp-server-nqn": nqn } = await disk();
  assert.deepEqual([exported, nqn], [true, publishContext["nqn"]]);
});

Deno.test("a controller without the Lease, or that has just got it, reads before it unpublishes", async () => {
  for (const flags of [[], ["--leader-election"]]) {
    await using cluster = await startClusterStack({ flags });
    const { stack } = cluster;
    const isReady = async () => (await stack.clients.identity.call("Probe", {})).ready?.value === true;
    await eventually(isReady);
    const { volumeId, unpublish, isOff } = await published(stack);
    const isElected = flags.length > 0;
    if (!isElected) {
      assert.equal(await cost(stack, unpublish), 2);
      continue;
    }
    const other = await stack.another();
    await stack.driver.stop(1_000);
    await eventually(async () => (await other.clients.identity.call("Probe", {})).ready?.value === true);
    const request = { volumeId, nodeId: "node-1" };
    const unpublishByOther = () =>
      other.clients.controller.call("ControllerUnpublishVolume", request, 30_000);
    assert.ok(await cost(stack, unpublishByOther) >= 2);
    assert.ok(await isOff());
  }
});
