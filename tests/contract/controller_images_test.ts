// Snapshots and clones through gRPC, on simulated routers whose pools can and cannot have subvolumes.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { systemClock } from "../../src/host/clock.ts";
import { formatProfile } from "../../src/router_profile/profile.ts";
import { getProfile } from "../../src/simulator/profile.ts";
import { create, createRequest, post, rejectsWith } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";

/** A stack on a router of which it is known when it answers a copy. */
async function startCopying(profile: string): Promise<Stack> {
  const path = await Deno.makeTempFile({ prefix: "rds-csi-test-" });
  const { answers, ...rest } = getProfile(profile);
  const known = { ...rest, answers: { ...answers, copyReturns: "when-done" } } as const;
  await Deno.writeTextFile(path, formatProfile(known));
  try {
    return await startStack({ simulator: { profile }, flags: ["--router-profile", path] });
  } finally {
    await Deno.remove(path);
  }
}

function filesOf(stack: Stack) {
  return stack.simulator.model.files;
}

for (const profile of ["ros-7.24", "xfs-pool"]) {
  Deno.test(`CreateSnapshot answers what it made at once on ${profile}`, async () => {
    await using stack = await startCopying(profile);
    const request = { name: "s", sourceVolumeId: await create(stack, "v") };
    const { snapshot } = await stack.clients.controller.call("CreateSnapshot", request);
    assert.equal(snapshot?.readyToUse, true);
    assert.deepEqual((await stack.clients.controller.call("CreateSnapshot", request)).snapshot, snapshot);
  });
}

Deno.test("no snapshot and no clone is made while another subvolume has the name of its source", async () => {
  await using stack = await startStack();
  const sourceVolumeId = await create(stack, "v");
  const { subvolumes } = stack.simulator.model;
  const source = subvolumes.list().find(({ path }) => path.includes(sourceVolumeId))!.path;
  const name = source.split("/").at(-1);
  const fs = "storage-pool-fs";
  await post(stack, "/console", {
    command: `/disk/btrfs/subvolume/add fs="${fs}" parent="${name}" name="${name}"`,
  });
  const before = subvolumes.list();
  const snapshot = { name: "s", sourceVolumeId };
  const clone = createRequest("c", { volumeContentSource: { volume: { volumeId: sourceVolumeId } } });
  const call = stack.clients.controller.call.bind(stack.clients.controller);
  const hint = new RegExp(`no other subvolume may be called ${name}`);
  await rejectsWith(status.UNAVAILABLE, call("CreateSnapshot", snapshot), hint);
  await rejectsWith(status.UNAVAILABLE, call("CreateVolume", clone), hint);
  assert.deepEqual(subvolumes.list(), before);
  await post(stack, "/console", {
    command: `/disk/btrfs/subvolume/remove [find where fs="${fs}" and fullname="${name}"]`,
  });
  await call("CreateSnapshot", snapshot);
  await call("CreateVolume", clone);
});

Deno.test("a copy whose place was taken meanwhile goes, and what took it stays", async () => {
  await using stack = await startCopying("xfs-pool");
  const volumeId = await create(stack, "v");
  stack.simulator.model.delays.copyMs = 500;
  const request = createRequest("c", { volumeContentSource: { volume: { volumeId } } });
  const cloning = stack.clients.controller.call("CreateVolume", request);
  const copies = () => filesOf(stack).list().map(({ path }) => path).filter((path) => path.endsWith(".part"));
  while (copies().length === 0) await systemClock.sleep(5);
  const place = copies()[0]!.replace(/\.[0-9a-f]{8}\.part$/, "");
  filesOf(stack).create(place, 7n);
  await rejectsWith(status.UNAVAILABLE, cloning);
  assert.deepEqual([filesOf(stack).find(place)?.sizeBytes, copies()], [7n, []]);
});
