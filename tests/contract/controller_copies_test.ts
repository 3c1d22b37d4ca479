// Snapshots and clones where images are plain files: only as copies, and only where copies can be trusted.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { RouterAnswers } from "../../src/router_profile/answers.ts";
import { clusterHash } from "../../src/volume/model/ids.ts";
import {
  changesNothing,
  cloneOf,
  cost,
  create,
  gibibyte,
  post,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../support/controller_calls.ts";
import { clusterId, type Stack, type StackOptions, startStack } from "../support/stack.ts";

const twice = { capacityRange: { requiredBytes: String(2n * gibibyte) } };
const hash = clusterHash(clusterId);

/** An XFS pool, and a driver that knows what its router answers. */
function onXfs(knobs: Partial<RouterAnswers> = {}): StackOptions {
  const told = { copyReturns: "when-done", ...knobs } as const;
  return { simulator: { profile: "xfs-pool", knobs: told }, told };
}

/** Names of images in the folder, those of snapshots in short. */
async function images(stack: Stack): Promise<string[]> {
  const { files } = await state(stack);
  return files.map(({ name }) => name.replace("storage-pool/metal-csi/", ""))
    .filter((name) => /\.(img|part)$/.test(name)).map((name) => name.replace(`.${hash}`, "")).toSorted();
}

async function patchDelays({ simulator }: Stack, copyMs: number): Promise<void> {
  const response = await fetch(`${simulator.controlUrl}/delays`, {
    method: "PATCH",
    body: JSON.stringify({ copyMs }),
  });
  assert.ok(response.ok, await response.text());
}

Deno.test("on an XFS pool a snapshot and a clone are copies, within their budgets", async () => {
  await using stack = await startStack(onXfs());
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  let id = "";
  const make = async () => {
    const made = await snapshot(stack, "snap", source);
    assert.deepEqual([made.readyToUse, made.sizeBytes], [true, String(gibibyte)]);
    id = made.snapshotId;
  };
  assert.ok(await cost(stack, make) <= 6, "CreateSnapshot");
  assert.equal(await cost(stack, make), 1, "CreateSnapshot, repeated");
  let clone = "", restored = "";
  const cloneVolume = async () => void (clone = await cloneOf(stack, "pvc-clone", { volumeId: source }));
  const restore = async () => void (restored = await cloneOf(stack, "pvc-r", { snapshotId: id }, twice));
  assert.ok(await cost(stack, cloneVolume) <= 5, "CreateVolume of a volume");
  assert.equal(await cost(stack, cloneVolume), 1, "CreateVolume, repeated");
  assert.ok(await cost(stack, restore) <= 6, "CreateVolume of a snapshot, larger");
  const kept = (await images(stack)).filter((name) => name.startsWith("snap-"));
  assert.equal(kept.length, 1);
  assert.match(kept[0]!, new RegExp(`^${id}[.]${source}[.][0-9a-z]+[.]b[.]img$`));
  for (const volumeId of [source, clone, restored]) await controller.call("DeleteVolume", { volumeId });
  await controller.call("DeleteSnapshot", { snapshotId: id });
  assert.deepEqual(await images(stack), []);
});

const untrusted: readonly (readonly [string, StackOptions, RegExp])[] = [
  ["nobody has asked the router", { simulator: { profile: "xfs-pool" } }, /--router-profile/],
  ["the router answers at once", onXfs({ copyReturns: "at-once" }), /before the copy is whole/],
];

for (const [what, options, words] of untrusted) {
  Deno.test(`where ${what} about copies, none is made, and the error says what to do`, async () => {
    await using stack = await startStack(options);
    const source = await create(stack, "pvc-source");
    await changesNothing(stack, async () => {
      await rejectsWith(status.FAILED_PRECONDITION, snapshot(stack, "snap", source), words);
      const clone = cloneOf(stack, "pvc-clone", { volumeId: source });
      await rejectsWith(status.FAILED_PRECONDITION, clone, words);
    });
    const { entries } = await stack.clients.controller.call("ListSnapshots", {});
    assert.deepEqual(entries, []);
  });
}

Deno.test("a router without /file copy makes no copy, and says so", async () => {
  await using stack = await startStack({
    simulator: { profile: "ros-7.21", pools: [{ name: "storage-pool", filesystem: "xfs" }] },
    told: { copyReturns: "when-done" },
  });
  const source = await create(stack, "pvc-source");
  await changesNothing(stack, async () => {
    await rejectsWith(status.UNAVAILABLE, snapshot(stack, "snap", source), /not copied to the end/);
    const clone = cloneOf(stack, "pvc-clone", { volumeId: source });
    await rejectsWith(status.UNAVAILABLE, clone, /not copied to the end/);
  });
});

Deno.test("what is published or lingers is not copied, what is restored from a snapshot is", async () => {
  await using stack = await startStack(onXfs());
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  const { snapshotId } = await snapshot(stack, "snap", source);
  await controller.call("ControllerPublishVolume", publishRequest(source));
  await changesNothing(stack, async () => {
    await rejectsWith(status.FAILED_PRECONDITION, snapshot(stack, "snap-2", source), /published/);
    const clone = cloneOf(stack, "pvc-clone", { volumeId: source });
    await rejectsWith(status.FAILED_PRECONDITION, clone, /published/);
  });
  await cloneOf(stack, "pvc-restored", { snapshotId });
  await controller.call("ControllerUnpublishVolume", { volumeId: source, nodeId: "node-1" });
  assert.equal((await snapshot(stack, "snap-2", source)).readyToUse, true);
});

Deno.test("a copy outlives the call that began it: it is listed as not ready, and a later call finds it whole", async () => {
  await using stack = await startStack(onXfs());
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  await patchDelays(stack, 1500);
  const begun = await snapshot(stack, "snap", source, 3000);
  assert.deepEqual([begun.readyToUse, begun.sizeBytes], [false, "0"]);
  const { entries } = await controller.call("ListSnapshots", {});
  assert.deepEqual(entries.map((entry) => entry.snapshot), [begun]);
  assert.deepEqual((await controller.call("GetSnapshot", { snapshotId: begun.snapshotId })).snapshot, begun);
  const restore = cloneOf(stack, "pvc-restored", { snapshotId: begun.snapshotId });
  await rejectsWith(status.UNAVAILABLE, restore, /still being copied/);
  const other = await create(stack, "pvc-other");
  await rejectsWith(status.ALREADY_EXISTS, snapshot(stack, "snap", other, 3000));
  const whole = await snapshot(stack, "snap", source);
  assert.deepEqual(whole, { ...begun, readyToUse: true, sizeBytes: String(gibibyte) });
  assert.equal((await images(stack)).length, 3);
});

Deno.test("a clone whose copy takes longer than its call is UNAVAILABLE, and there when the copy is whole", async () => {
  await using stack = await startStack(onXfs());
  const source = await create(stack, "pvc-source");
  await patchDelays(stack, 1500);
  const request = { volumeContentSource: { volume: { volumeId: source } } };
  const { controller } = stack.clients;
  const ask = (timeoutMs: number) =>
    controller.call("CreateVolume", {
      name: "pvc-clone",
      capacityRange: { requiredBytes: String(gibibyte) },
      volumeCapabilities: [{ mount: { fsType: "ext4" }, accessMode: { mode: "SINGLE_NODE_WRITER" } }],
      ...request,
    }, timeoutMs);
  await rejectsWith(status.UNAVAILABLE, ask(3000), /still being copied/);
  const { volume } = await ask(60_000);
  assert.equal(volume!.contentSource?.volume?.volumeId, source);
  assert.deepEqual(await images(stack), [source, volume!.volumeId].map((id) => `${id}.img`).toSorted());
});

Deno.test("a copy that is deleted while it is made, or whose router reboots, leaves nothing in the end", async () => {
  await using stack = await startStack({ ...onXfs(), flags: ["--settle-time", "0s"] });
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  await patchDelays(stack, 60_000);
  const begun = await snapshot(stack, "snap", source, 2500);
  assert.equal(begun.readyToUse, false);
  await controller.call("DeleteSnapshot", { snapshotId: begun.snapshotId });
  assert.deepEqual(await images(stack), [`${source}.img`]);

  const again = await snapshot(stack, "snap", source, 2500);
  assert.equal(again.readyToUse, false);
  await post(stack, "/reboot", { downMs: 20 });
  await patchDelays(stack, 0);
  const outcomes: boolean[] = [];
  while (outcomes.at(-1) !== true && outcomes.length < 20) {
    outcomes.push(await snapshot(stack, "snap", source).then(({ readyToUse }) => readyToUse, () => false));
  }
  assert.equal(outcomes.at(-1), true, "asking again gets there");
  const left = await images(stack);
  assert.deepEqual([left.length, left.filter((name) => name.endsWith(".part"))], [2, []]);
});

Deno.test("a source that is used while it is copied makes no snapshot and no clone", async () => {
  await using stack = await startStack(onXfs());
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  await patchDelays(stack, 800);
  const making = snapshot(stack, "snap", source);
  const failure = rejectsWith(status.ABORTED, making, /changed while it was copied/);
  const cloning = cloneOf(stack, "pvc-clone", { volumeId: source });
  const failureOfClone = rejectsWith(status.ABORTED, cloning, /changed while it was copied/);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await controller.call("ControllerPublishVolume", publishRequest(source));
  await Promise.all([failure, failureOfClone]);
  assert.deepEqual(await images(stack), [`${source}.img`]);
  await controller.call("ControllerUnpublishVolume", { volumeId: source, nodeId: "node-1" });
  assert.equal((await snapshot(stack, "snap", source)).readyToUse, true);
});
