// The controller on routers that do some things otherwise, told of it by --router-profile and not told: how disks grow,
// and RouterOS before 7.21, where no node can be fenced.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { RouterAnswers } from "../../src/router_profile/answers.ts";
import {
  changesNothing,
  cloneOf,
  cost,
  create,
  gibibyte,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";

const twice = { capacityRange: { requiredBytes: String(2n * gibibyte) } };
const both = String(2n * gibibyte);

function growing(grow: RouterAnswers["grow"], isTold: boolean): Promise<Stack> {
  return startStack({ simulator: { knobs: { grow } }, ...isTold ? { told: { grow } } : {} });
}

function expand({ clients }: Stack, volumeId: string) {
  return clients.controller.call("ControllerExpandVolume", { volumeId, ...twice });
}

function publish({ clients }: Pick<Stack, "clients">, volumeId: string, nodeId = "node-1") {
  return clients.controller.call("ControllerPublishVolume", publishRequest(volumeId, nodeId));
}

function unpublish({ clients }: Pick<Stack, "clients">, volumeId: string, nodeId = "node-1") {
  return clients.controller.call("ControllerUnpublishVolume", { volumeId, nodeId });
}

async function diskOf(stack: Stack, slot: string): Promise<Readonly<Record<string, unknown>>> {
  return (await state(stack)).disks.find((disk) => disk.slot === slot)!;
}

async function fileDisks(stack: Stack): Promise<string[]> {
  return (await state(stack)).disks.filter((disk) => disk.type === "file").map((disk) => disk.slot);
}

for (const isTold of [true, false]) {
  Deno.test(`a router that grows at once grows what is published, ${isTold ? "told" : "untold"}`, async () => {
    await using stack = await growing("live", isTold);
    const id = await create(stack, "pvc-grow");
    await publish(stack, id);
    assert.deepEqual(await expand(stack, id), { capacityBytes: both, nodeExpansionRequired: true });
    const { publishContext } = await publish(stack, id);
    assert.equal(publishContext["size"], both);
    assert.deepEqual(stack.simulator.model.disks.findBySlot(id)?.attachedBytes, 2n * gibibyte);
    const { snapshotId } = await snapshot(stack, "snap", await create(stack, "pvc-small"));
    await cloneOf(stack, "pvc-large", { snapshotId }, twice);
  });
}

Deno.test("a router told to grow nothing is not asked to: nothing changes, and the reason is given", async () => {
  await using stack = await growing("never", true);
  const id = await create(stack, "pvc-fixed");
  const { snapshotId } = await snapshot(stack, "snap", id);
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, expand(stack, id), /does not grow file-backed disks/);
    for (const source of [{ volumeId: id }, { snapshotId }]) {
      const clone = cloneOf(stack, "pvc-larger", source, twice);
      await rejectsWith(status.FAILED_PRECONDITION, clone, /does not grow file-backed disks/);
    }
  });
  const enough = { volumeId: id, capacityRange: { requiredBytes: String(gibibyte) } };
  const { capacityBytes } = await stack.clients.controller.call("ControllerExpandVolume", enough);
  assert.equal(capacityBytes, String(gibibyte));
  await cloneOf(stack, "pvc-same", { snapshotId });
});

Deno.test("a router that turns out to grow nothing: no size is made up, and no clone of the wrong size stays", async () => {
  await using stack = await growing("never", false);
  const id = await create(stack, "pvc-fixed");
  await rejectsWith(status.FAILED_PRECONDITION, expand(stack, id), /did not grow the disk.*doctor --probe/);
  const { volume } = await stack.clients.controller.call("ControllerGetVolume", { volumeId: id });
  assert.equal(volume!.capacityBytes, String(gibibyte));
  const clone = cloneOf(stack, "pvc-larger", { volumeId: id }, twice);
  await rejectsWith(status.FAILED_PRECONDITION, clone, /did not grow the disk/);
  assert.deepEqual(await fileDisks(stack), [id]);
  const { files, subvolumes } = await state(stack);
  assert.deepEqual(files.filter(({ name }) => name.endsWith(".img")).length, 1);
  assert.equal(subvolumes.length, 2);
});

Deno.test("a router that grows only what is not exported is asked only then", async () => {
  await using stack = await growing("after-toggle", true);
  const id = await create(stack, "pvc-toggle");
  await publish(stack, id);
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, expand(stack, id), /unpublish it first/);
  });
  await unpublish(stack, id);
  assert.equal((await expand(stack, id)).capacityBytes, both);
  const { publishContext } = await publish(stack, id);
  assert.equal(publishContext["size"], both);
  assert.equal(stack.simulator.model.disks.findBySlot(id)?.attachedBytes, 2n * gibibyte);
  await cloneOf(stack, "pvc-larger", { volumeId: id }, {
    capacityRange: { requiredBytes: String(3n * gibibyte) },
  });
});

Deno.test("where nobody says that it grows only then, the record has the size and the node does not see it yet", async () => {
  await using stack = await growing("after-toggle", false);
  const id = await create(stack, "pvc-toggle");
  await publish(stack, id);
  assert.equal((await expand(stack, id)).capacityBytes, both);
  assert.equal(stack.simulator.model.disks.findBySlot(id)?.attachedBytes, gibibyte);
  await unpublish(stack, id);
  await publish(stack, id);
  assert.equal(stack.simulator.model.disks.findBySlot(id)?.attachedBytes, 2n * gibibyte);
});

const old = { simulator: { profile: "ros-7.20" } } as const;

Deno.test("RouterOS before 7.21 publishes nothing unless the operator takes the risk, and all else works", async () => {
  await using stack = await startStack(old);
  const { controller } = stack.clients;
  const id = await create(stack, "pvc-old");
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, publish(stack, id), /--allow-unfenced/);
    await unpublish(stack, id);
    await controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "" });
    const { volume } = await controller.call("ControllerGetVolume", { volumeId: id });
    assert.deepEqual(volume!.capacityBytes, String(gibibyte));
    const { entries } = await controller.call("ListVolumes", {});
    assert.deepEqual(entries.map((entry) => entry.status!.publishedNodeIds), [[]]);
    assert.deepEqual((await controller.call("ControllerListVolumeHealth", {})).entries, []);
  });
  const { snapshotId } = await snapshot(stack, "snap", id);
  const restored = await cloneOf(stack, "pvc-restored", { snapshotId }, twice);
  await expand(stack, id);
  for (const volumeId of [id, restored]) await controller.call("DeleteVolume", { volumeId });
  await controller.call("DeleteSnapshot", { snapshotId });
  assert.deepEqual(await fileDisks(stack), []);
});

Deno.test("with --allow-unfenced an export is named after its slot, and its holder is known by the record", async () => {
  await using stack = await startStack({ ...old, flags: ["--allow-unfenced"] });
  const { controller } = stack.clients;
  const id = await create(stack, "pvc-old");
  const first = await publish(stack, id);
  assert.equal(first.publishContext["nqn"], id);
  assert.equal((await diskOf(stack, id))["nvme-tcp-export"], true);
  assert.deepEqual(stack.simulator.model.exports.list().map(String), [id]);
  await changesNothing(stack, async () => {
    assert.deepEqual(await publish(stack, id), first);
    await rejectsWith(status.FAILED_PRECONDITION, publish(stack, id, "node-2"), /node-1/);
    await unpublish(stack, id, "node-2");
    const { status: shown } = await controller.call("ControllerGetVolume", { volumeId: id });
    assert.deepEqual(shown?.publishedNodeIds, ["node-1"]);
    const { entries } = await controller.call("ListVolumes", {});
    assert.deepEqual(entries.map((entry) => entry.status!.publishedNodeIds), [["node-1"]]);
    assert.deepEqual((await controller.call("ControllerListVolumeHealth", {})).entries, []);
  });
  await unpublish(stack, id);
  assert.deepEqual([(await diskOf(stack, id))["nvme-tcp-export"], stack.simulator.model.exports.list()], [
    false,
    [],
  ]);
  const second = await publish(stack, id, "node-2");
  assert.equal(second.publishContext["nqn"], id);
  assert.notEqual(second.publishContext["epoch"], first.publishContext["epoch"]);
  assert.equal(second.publishContext["mayFormat"], "false");
  await rejectsWith(status.FAILED_PRECONDITION, controller.call("DeleteVolume", { volumeId: id }), /node-2/);
});

Deno.test("without --allow-unfenced a volume that was published with it can be taken away, and not given again", async () => {
  await using stack = await startStack(old);
  const daring = await stack.another(["--allow-unfenced"]);
  const id = await create(stack, "pvc-old");
  await publish(daring, id);
  await rejectsWith(status.FAILED_PRECONDITION, publish(stack, id), /--allow-unfenced/);
  const { status: shown } = await stack.clients.controller.call("ControllerGetVolume", { volumeId: id });
  assert.deepEqual(shown?.publishedNodeIds, ["node-1"]);
  await unpublish(stack, id);
  assert.deepEqual(stack.simulator.model.exports.list(), []);
  await rejectsWith(status.FAILED_PRECONDITION, publish(stack, id), /--allow-unfenced/);
});

Deno.test("a router that is upgraded to 7.21 goes on serving a holder, and fences from the next epoch on", async () => {
  await using stack = await startStack({ ...old, flags: ["--allow-unfenced"] });
  const id = await create(stack, "pvc-upgraded");
  const first = await publish(stack, id);
  const response = await fetch(`${stack.simulator.controlUrl}/profile`, { method: "PUT", body: "ros-7.24" });
  assert.ok(response.ok, await response.text());
  const upgraded = await stack.another();
  const { status: shown } = await upgraded.clients.controller.call("ControllerGetVolume", { volumeId: id });
  assert.deepEqual(shown?.publishedNodeIds, ["node-1"]);
  const again = await publish(upgraded, id);
  assert.equal(again.publishContext["nqn"], first.publishContext["nqn"], "the node is not cut off");
  await unpublish(upgraded, id);
  const { publishContext } = await publish(upgraded, id, "node-2");
  assert.ok(publishContext["nqn"]!.endsWith(`:${id}:${publishContext["epoch"]}`), publishContext["nqn"]);
});

Deno.test("RouterOS without subvolumes keeps every image as a file, and every call within its budget", async () => {
  await using stack = await startStack({
    simulator: { profile: "ros-7.17" },
    flags: ["--allow-unfenced"],
  });
  const { controller } = stack.clients;
  await create(stack, "warm-up");
  let id = "";
  assert.ok(await cost(stack, async () => id = await create(stack, "pvc-older")) <= 2, "CreateVolume");
  assert.ok(await cost(stack, () => publish(stack, id)) <= 2, "Publish");
  assert.ok(await cost(stack, () => unpublish(stack, id)) <= 2, "Unpublish");
  const words = /--router-profile/;
  await rejectsWith(status.FAILED_PRECONDITION, snapshot(stack, "snap", id), words);
  await rejectsWith(status.FAILED_PRECONDITION, cloneOf(stack, "pvc-clone", { volumeId: id }), words);
  assert.deepEqual((await state(stack)).subvolumes, []);
  assert.ok(await cost(stack, () => controller.call("DeleteVolume", { volumeId: id })) <= 2, "Delete");
});

Deno.test("a router that cuts the record of a holder gives no volume away: the record is put back, and the export is off", async () => {
  await using stack = await startStack({ simulator: { knobs: { maxComment: 90 } } });
  const id = await create(stack, "pvc-short");
  const before = (await diskOf(stack, id))["comment"];
  await rejectsWith(status.FAILED_PRECONDITION, publish(stack, id), /keeps only 90 bytes/);
  const { comment, ...disk } = await diskOf(stack, id);
  assert.deepEqual([comment, disk["nvme-tcp-export"]], [before, false]);
  assert.deepEqual(stack.simulator.model.exports.list(), []);
  await stack.clients.controller.call("DeleteVolume", { volumeId: id });
});

Deno.test("a router that cuts every record keeps no volume, and one that cuts a clone's keeps no clone", async () => {
  const sizes: readonly (readonly [maxComment: number, kept: number])[] = [[79, 0], [110, 1]];
  for (const [maxComment, kept] of sizes) {
    await using stack = await startStack({ simulator: { knobs: { maxComment } } });
    const words = new RegExp(`keeps only ${maxComment} bytes`);
    if (kept === 0) await rejectsWith(status.FAILED_PRECONDITION, create(stack, "pvc-short"), words);
    else {
      const volumeId = await create(stack, "pvc-short");
      const clone = cloneOf(stack, "pvc-clone", { volumeId });
      await rejectsWith(status.FAILED_PRECONDITION, clone, words);
    }
    const { disks, files, subvolumes } = await state(stack);
    assert.equal(disks.filter((disk) => disk.type === "file").length, kept);
    assert.equal(files.filter(({ name }) => name.endsWith(".img")).length, kept);
    assert.equal(subvolumes.length, 1 + kept);
  }
});
