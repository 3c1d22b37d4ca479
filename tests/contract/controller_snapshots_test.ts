// Snapshots and clones through gRPC: what they cost, and when they are complete. The rules are tested beside
// src/controller/snapshots and src/controller/volumes, and routers of every kind by contract/matrix.ts.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import {
  cloneOf,
  cost,
  create,
  createRequest,
  gibibyte,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../support/controller_calls.ts";
import { systemClock } from "../../src/host/clock.ts";
import { clusterHash } from "../../src/volume/model/ids/cluster_hash.ts";
import { clusterId, type Stack, type StackOptions, startStack } from "../support/stack.ts";
import { makeScratch } from "../support/scratch.ts";

/** An XFS pool, on which images are plain files, and a driver that has been told how its router answers a copy. */
const onXfs: StackOptions = { simulator: { profile: "xfs-pool" }, reported: { copyReturns: "when-done" } };
const twice = { capacityRange: { requiredBytes: String(2n * gibibyte) } };

/** Names of the images in the folder; those of snapshots are shortened. */
async function images(stack: Stack): Promise<string[]> {
  const { files } = await state(stack);
  return files.map(({ name }) => name.replace("storage-pool/metal-csi/", ""))
    .filter((name) => /\.(img|part)$/.test(name)).map((name) =>
      name.replace(`.${clusterHash(clusterId)}`, "")
    ).toSorted();
}

Deno.test("every call about snapshots and clones costs no more router commands than its budget", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  await create(stack, "warm-up");
  const source = await create(stack, "pvc-source");
  let id = "";
  const make = async () => void (id = (await snapshot(stack, "snap-one", source)).snapshotId);
  // For a volume that was never published the command also checks that this is still so, which leaves no room in it for
  // reading back.
  assert.ok(await cost(stack, make) <= 4, "CreateSnapshot");
  assert.equal(await cost(stack, make), 1, "CreateSnapshot, repeated");
  assert.equal(await cost(stack, () => controller.call("ListSnapshots", {})), 1, "ListSnapshots");
  const get = () => controller.call("GetSnapshot", { snapshotId: id });
  assert.equal(await cost(stack, get), 1, "GetSnapshot");
  const from = { snapshotId: id };
  assert.ok(await cost(stack, () => cloneOf(stack, "pvc-restored", from)) <= 3, "CreateVolume of a snapshot");
  assert.equal(await cost(stack, () => cloneOf(stack, "pvc-restored", from)), 1, "CreateVolume, repeated");
  const clone = () => cloneOf(stack, "pvc-clone", { volumeId: source });
  assert.ok(await cost(stack, clone) <= 3, "CreateVolume of a volume");
  const grown = () => cloneOf(stack, "pvc-grown", from, twice);
  assert.ok(await cost(stack, grown) <= 4, "CreateVolume of a snapshot, larger");
  const remove = () => controller.call("DeleteSnapshot", { snapshotId: id });
  assert.ok(await cost(stack, remove) <= 2, "DeleteSnapshot");
  assert.equal(await cost(stack, remove), 1, "DeleteSnapshot, repeated");
  assert.ok(await cost(stack, () => controller.call("DeleteVolume", { volumeId: source })) <= 2, "Delete");
});

Deno.test("a clone says what it was made from, and may not be formatted if anything can be in it", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const mayFormat = async (volumeId: string) => {
    const { publishContext } = await controller.call("ControllerPublishVolume", publishRequest(volumeId));
    return publishContext["mayFormat"];
  };
  const source = await create(stack, "pvc-source");
  const blank = await snapshot(stack, "snap-blank", source);
  const volumeContentSource = { snapshot: { snapshotId: blank.snapshotId } };
  const request = createRequest("pvc-blank", { volumeContentSource });
  const { volume } = await controller.call("CreateVolume", request);
  assert.deepEqual(volume!.contentSource?.snapshot, volumeContentSource.snapshot);
  assert.equal(await mayFormat(volume!.volumeId), "true");
  assert.equal(await mayFormat(await cloneOf(stack, "pvc-blank-clone", { volumeId: source })), "true");
  assert.equal(await mayFormat(source), "true");
  const used = await snapshot(stack, "snap-used", source);
  assert.equal(await mayFormat(await cloneOf(stack, "pvc-used", { snapshotId: used.snapshotId })), "false");
  assert.equal(await mayFormat(await cloneOf(stack, "pvc-used-clone", { volumeId: source })), "false");
});
Deno.test("on an XFS pool a snapshot and a clone are copies, within their budgets", async () => {
  await using stack = await startStack(onXfs);
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

Deno.test("a snapshot on a Btrfs pool is copied to a StorageClass of another pool, while its volume is in use", async () => {
  await using scratch = await makeScratch();
  const backingDirectory = scratch.path;
  const bases = ["/storage-pool/metal-csi", "/other/csi"];
  await using stack = await startStack({
    simulator: {
      backingDirectory,
      basePaths: bases,
      pools: [{ name: "storage-pool" }, { name: "other", filesystem: "xfs" }],
    },
    reported: { copyReturns: "when-done" },
    flags: bases.flatMap((base) => ["--base-path", base]),
  });
  const small = { capacityRange: { requiredBytes: String(64 << 20) } };
  const source = await create(stack, "pvc-source", small);
  const image = async (id: string) => {
    const { disks } = await state(stack);
    const path = String(disks.find(({ slot }) => slot === id)?.["file-path"] ?? assert.fail(id));
    return { path, file: stack.simulator.model.backing.locate(path.replace(/^\//, ""))! };
  };
  const write = async (text: string) => {
    using file = await Deno.open((await image(source)).file, { write: true });
    await file.write(new TextEncoder().encode(text));
  };
  await write("then");
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(source));
  const { snapshotId } = await snapshot(stack, "snap", source);
  await write("now.");
  const parameters = { volumePath: "/other/csi" };
  const restored = await cloneOf(stack, "pvc-restored", { snapshotId }, { ...small, parameters });
  const { path, file } = await image(restored);
  assert.match(path, /^\/?other\/csi\/[^/]+\.img$/);
  using opened = await Deno.open(file);
  const bytes = new Uint8Array(4);
  await opened.read(bytes);
  assert.equal(new TextDecoder().decode(bytes), "then");
});

Deno.test("no snapshot and no clone is made while another subvolume has the name of its source", async () => {
  await using stack = await startStack();
  const sourceVolumeId = await create(stack, "v");
  const { subvolumes } = stack.simulator.model;
  const source = subvolumes.list().find(({ path }) => path.includes(sourceVolumeId))!.path;
  const name = source.split("/").at(-1);
  const fs = "storage-pool-fs";
  await control(stack.simulator, "POST /console", {
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
  await control(stack.simulator, "POST /console", {
    command: `/disk/btrfs/subvolume/remove [find where fs="${fs}" and fullname="${name}"]`,
  });
  await call("CreateSnapshot", snapshot);
  await call("CreateVolume", clone);
});

Deno.test("a copy whose name was taken meanwhile is removed, and what took the name stays", async () => {
  await using stack = await startStack(onXfs);
  const volumeId = await create(stack, "v");
  stack.simulator.model.delays.copyMs = 500;
  const request = createRequest("c", { volumeContentSource: { volume: { volumeId } } });
  const cloning = stack.clients.controller.call("CreateVolume", request);
  const { files } = stack.simulator.model;
  const copies = () => files.list().map(({ path }) => path).filter((path) => path.endsWith(".part"));
  while (copies().length === 0) await systemClock.sleep(5);
  const location = copies()[0]!.replace(/\.[0-9a-f]{8}\.part$/, "");
  files.create(location, 7n);
  await rejectsWith(status.UNAVAILABLE, cloning);
  assert.deepEqual([files.find(location)?.sizeBytes, copies()], [7n, []]);
});
