// A controller that remembers what it wrote may skip the read before a change. The tests change something in between.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { parseComment } from "../../src/volume/model/record.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import {
  cost,
  create,
  gibibyte,
  post,
  publishRequest,
  rejectsWith,
  state,
} from "../support/controller_calls.ts";
import { growsOnline, type Stack, startStack } from "../support/stack.ts";
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

Deno.test("a volume that this controller has published is unpublished in one command", async () => {
  await using stack = await startStack();
  const { unpublish, isOff, publish } = await published(stack);
  assert.equal(await cost(stack, unpublish), 1);
  assert.ok(await isOff());
  assert.equal(await cost(stack, unpublish), 1, "nothing to do");
  await publish("node-2");
  assert.equal(await cost(stack, unpublish), 1, "of another node only a read tells");
  assert.equal((await state(stack)).exports.length, 1);
  assert.deepEqual(await stack.violations(), []);
});

Deno.test("an error text is no end: a withdrawal that runs after it takes nothing from whoever was answered OK", async () => {
  await using stack = await startStack();
  const { publish, unpublish, disk } = await published(stack);
  await post(stack, "/faults", { match: "^/disk set", action: "error-late", value: "action timed out" });
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

Deno.test("a volume that this controller has made or unpublished last is published in one command", async () => {
  await using stack = await startStack();
  await create(stack, "warm-up");
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-2");
  const publish = (nodeId: string) =>
    controller.call("ControllerPublishVolume", publishRequest(volumeId, nodeId));
  assert.equal(await cost(stack, () => publish("node-1")), 1);
  assert.equal(await cost(stack, () => publish("node-1")), 1, "nothing to do");
  await rejectsWith(status.FAILED_PRECONDITION, publish("node-2"));
  await controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
  assert.equal(await cost(stack, () => publish("node-2")), 1);
  assert.equal((await state(stack)).exports.length, 1);
  assert.deepEqual(await stack.violations(), []);
});

Deno.test("a volume that this controller has changed last grows in one command, and never by less than a person has grown it", async () => {
  await using stack = await startStack(growsOnline);
  await create(stack, "warm-up");
  const { volumeId, disk, unpublish } = await published(stack);
  const expand = (gib: bigint) => {
    const request = { volumeId, capacityRange: { requiredBytes: String(gib * gibibyte) } };
    return stack.clients.controller.call("ControllerExpandVolume", request);
  };
  assert.equal(await cost(stack, () => expand(2n)), 1, "published");
  await unpublish();
  assert.equal(await cost(stack, () => expand(3n)), 1, "unpublished");
  assert.equal(await cost(stack, () => expand(3n)), 1, "grown before");
  const command = `/disk set [find slot="${volumeId}"] file-size=${9n * gibibyte}`;
  await post(stack, "/console", { command });
  assert.equal((await expand(4n)).capacityBytes, String(9n * gibibyte));
  assert.equal((await disk())["size"], Number(9n * gibibyte));
  assert.deepEqual(await stack.violations(), []);
});

Deno.test("a volume that this controller has made or unpublished last is deleted in one command, with all that it had", async () => {
  await using stack = await startStack();
  await create(stack, "warm-up");
  const { controller } = stack.clients;
  const before = await state(stack);
  const made = await create(stack, "pvc-2");
  const used = await create(stack, "pvc-3");
  await controller.call("ControllerPublishVolume", publishRequest(used));
  await controller.call("ControllerUnpublishVolume", { volumeId: used, nodeId: "node-1" });
  const isMine = ({ name }: { name: string }) => name.includes(made) || name.includes(used);
  assert.ok((await state(stack)).files.some(isMine));
  for (const volumeId of [made, used]) {
    assert.equal(await cost(stack, () => controller.call("DeleteVolume", { volumeId })), 1);
    assert.equal(await cost(stack, () => controller.call("DeleteVolume", { volumeId })), 1, "gone before");
  }
  const { disks, files, subvolumes, exports } = await state(stack);
  assert.deepEqual(
    [disks.length, files, subvolumes, exports],
    [before.disks.length, before.files, before.subvolumes, before.exports],
  );
  assert.deepEqual(await stack.violations(), []);
});

Deno.test("a volume that somebody has changed or shares, or whose pool's label a volume has, is not deleted unread", async () => {
  await using stack = await startStack();
  const { volumeId, unpublish, disk } = await published(stack);
  const { disks } = stack.simulator.model;
  const remove = (id: string) => stack.clients.controller.call("DeleteVolume", { volumeId: id });
  const hasFiles = async (id: string) => (await state(stack)).files.some(({ name }) => name.includes(id));
  await unpublish();
  await post(stack, `/disks/${volumeId}`, { comment: `by hand ${(await disk()).comment}` });
  assert.equal(await cost(stack, () => remove(volumeId)), 3);
  const shared = await create(stack, "pvc-2");
  const copy = disks.add({ ...disks.findBySlot(shared)!, slot: "copy", comment: "" });
  await rejectsWith(status.FAILED_PRECONDITION, remove(shared), /disk=copy/);
  assert.ok(disks.findBySlot(shared));
  disks.remove(copy.id);
  const labelled = await create(stack, "pvc-3");
  const tenant = await create(stack, "pvc-4");
  await post(stack, `/disks/${tenant}`, { "fs-label": "storage-pool-fs" });
  await rejectsWith(status.UNAVAILABLE, remove(labelled), /the image is still there.*fs-label/);
  await post(stack, `/disks/${tenant}`, { "fs-label": "" });
  for (const id of [shared, labelled, tenant]) {
    await remove(id);
    assert.equal(await hasFiles(id), false);
  }
  assert.deepEqual(await stack.violations(), []);
});

Deno.test("a volume that was changed by hand, or is on a router that boots, is read before it is published", async () => {
  await using stack = await startStack();
  const { volumeId, publish, unpublish, disk } = await published(stack);
  await unpublish();
  await post(stack, `/disks/${volumeId}`, { comment: `by hand ${(await disk()).comment}` });
  assert.equal(await cost(stack, publish), 3);
  assert.match(String((await disk()).comment), /^by hand /);
  await unpublish();
  await post(stack, "/reboot", { downMs: 1, disksLateMs: 3_000 });
  await rejectsWith(status.UNAVAILABLE, publish());
  await eventually(async () => await publish().then(() => true, () => false), 20_000);
  assert.equal((await state(stack)).exports.length, 1);
  assert.deepEqual(await stack.violations(), []);
});

Deno.test("a volume whose image is gone is not published unread", async () => {
  await using stack = await startStack();
  const { volumeId, publish, unpublish } = await published(stack);
  await unpublish();
  const { files } = stack.simulator.model;
  files.remove(files.list().find(({ path }) => path.includes(volumeId) && path.endsWith(".img"))!.path);
  await rejectsWith(status.UNAVAILABLE, publish(), /does not show its image/);
  assert.deepEqual((await state(stack)).exports, []);
});

Deno.test("a volume whose comment somebody has changed since is read before it is unpublished", async () => {
  await using stack = await startStack();
  const { volumeId, unpublish, disk, isOff } = await published(stack);
  await post(stack, `/disks/${volumeId}`, { comment: `by hand ${(await disk()).comment}` });
  assert.equal(await cost(stack, unpublish), 3);
  assert.ok(await isOff());
  assert.match(String((await disk()).comment), /^by hand /);
});

Deno.test("a volume that the router does not show yet after a boot is not said to be unpublished", async () => {
  await using stack = await startStack();
  const { unpublish, isOff } = await published(stack);
  await post(stack, "/reboot", { downMs: 1, disksLateMs: 3_000 });
  await rejectsWith(status.UNAVAILABLE, unpublish());
  await eventually(async () => await unpublish().then(() => true, () => false), 20_000);
  assert.ok(await isOff());
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
