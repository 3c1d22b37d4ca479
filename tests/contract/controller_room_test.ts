// What a controller decides from the room that it has remembered: only that there is plenty, and only while it is the
// only controller.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { systemClock } from "../../src/host/clock.ts";
import type { Clock } from "../../src/volume/ports/system.ts";
import { type ClusterStack, startClusterStack } from "../support/cluster_stack.ts";
import {
  cloneOf,
  cost,
  create,
  createRequest,
  gibibyte,
  publishRequest,
  rejectsWith,
  snapshot,
} from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { eventually } from "../support/eventually.ts";

/** A clock that a test can move forward. */
function movable(): Clock & { ahead(ms: number): void } {
  let aheadMs = 0;
  return {
    now: () => systemClock.now(),
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    sleep: (ms, signal) => systemClock.sleep(ms, signal),
    timer: (ms, callback) => systemClock.timer(ms, callback),
    ahead: (ms) => void (aheadMs += ms),
  };
}

const pools = [{ name: "storage-pool", sizeBytes: 100n * gibibyte }];

function sized(gib: bigint) {
  return { capacityRange: { requiredBytes: String(gib * gibibyte) } };
}

/** Runs a command on the router as a person would. */
async function byHand(stack: Stack, command: string): Promise<void> {
  const { output } = await control<{ output: string }>(stack.simulator, "POST /console", { command });
  assert.equal(output, "", command);
}

const bigDisk = `/disk add type=file slot="by-hand" file-path="/storage-pool/by-hand.img" file-size=`;

/** The bytes that the router prints during a call. */
async function bytesFor(stack: Stack, work: () => Promise<unknown>): Promise<number> {
  const before = stack.simulator.journal.counts.bytes;
  await work();
  return stack.simulator.journal.counts.bytes - before;
}

async function expand(stack: Pick<Stack, "clients">, volumeId: string, gib: bigint): Promise<unknown> {
  return await stack.clients.controller.call("ControllerExpandVolume", { volumeId, ...sized(gib) });
}

Deno.test("creating, creating again, expanding and asking for capacity read as much among 2,000 disks as among 100, in as many commands", async () => {
  const bytesAmong = async (seedDisks: number) => {
    await using stack = await startStack({ simulator: { seedDisks, pools: [{ name: "storage-pool" }] } });
    const first = await create(stack, "pvc-first");
    const bytes = {
      create: await bytesFor(stack, () => create(stack, "pvc-second")),
      again: await bytesFor(stack, () => create(stack, "pvc-second")),
      expand: await bytesFor(stack, () => expand(stack, first, 2n)),
      capacity: await bytesFor(stack, () => stack.clients.controller.call("GetCapacity", {})),
    };
    assert.equal(await cost(stack, () => create(stack, "pvc-third")), 1);
    assert.equal(await cost(stack, () => create(stack, "pvc-third")), 1);
    assert.equal(await cost(stack, () => expand(stack, first, 3n)), 1);
    return bytes;
  };
  const [few, many] = [await bytesAmong(100), await bytesAmong(2000)];
  for (const call of ["create", "again", "expand", "capacity"] as const) {
    assert.ok(many[call] <= 1.3 * few[call], `${call}: ${few[call]} and ${many[call]} bytes`);
  }
});

Deno.test("making a snapshot, again, deleting it, restoring and cloning read as much among 2,000 disks as among 100, in as many commands", async () => {
  const costsAmong = async (seedDisks: number) => {
    await using stack = await startStack({ simulator: { seedDisks, pools: [{ name: "storage-pool" }] } });
    const { controller } = stack.clients;
    const volumeId = await create(stack, "pvc-source");
    await controller.call("ControllerPublishVolume", publishRequest(volumeId));
    const { snapshotId } = await snapshot(stack, "snap-kept", volumeId);
    let id = "";
    const calls: Record<string, readonly [commands: number, work: () => Promise<unknown>]> = {
      snapshot: [2, async () => id = (await snapshot(stack, "snap", volumeId)).snapshotId],
      "snapshot again": [1, () => snapshot(stack, "snap", volumeId)],
      // A restore cannot make the volume and read it back in one command.
      restore: [3, () => cloneOf(stack, "pvc-restored", { snapshotId })],
      "restore again": [1, () => cloneOf(stack, "pvc-restored", { snapshotId })],
      clone: [2, () => cloneOf(stack, "pvc-clone", { volumeId })],
      "clone again": [1, () => cloneOf(stack, "pvc-clone", { volumeId })],
      "snapshot deleted": [2, () => controller.call("DeleteSnapshot", { snapshotId: id })],
    };
    const bytes = new Map<string, number>();
    for (const [call, [commands, work]] of Object.entries(calls)) {
      const before = stack.simulator.journal.counts.bytes;
      assert.equal(await cost(stack, work), commands, call);
      bytes.set(call, stack.simulator.journal.counts.bytes - before);
    }
    return bytes;
  };
  const [few, many] = [await costsAmong(100), await costsAmong(2000)];
  for (const [call, bytes] of few) {
    assert.ok(many.get(call)! <= 1.3 * bytes, `${call}: ${bytes} and ${many.get(call)} bytes`);
  }
});

Deno.test("even with plenty of room, nothing is made from a source that is gone, or where the object of another lies", async () => {
  await using stack = await startStack({ simulator: { pools } });
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-source");
  const { snapshotId } = await snapshot(stack, "snap-1", volumeId);
  const clone = await cloneOf(stack, "pvc-clone", { volumeId });
  const path = stack.simulator.model.disks.findBySlot(clone)!.filePath;
  await controller.call("DeleteVolume", { volumeId: clone });
  const folder = path.slice("/storage-pool/".length, path.lastIndexOf("/"));
  await byHand(stack, `/disk/btrfs/subvolume/add fs="storage-pool-fs" name="${folder}"`);
  await byHand(stack, `/disk add type=file slot="taken" file-path="${path}" file-size=1073741824`);
  for (const source of [{ volumeId }, { snapshotId }]) {
    await rejectsWith(status.FAILED_PRECONDITION, cloneOf(stack, "pvc-clone", source), /taken/);
  }
  await byHand(stack, `/disk remove "taken"`);
  for (const source of [{ volumeId }, { snapshotId }]) {
    const call = cloneOf(stack, "pvc-clone", source);
    await rejectsWith(status.FAILED_PRECONDITION, call, /its image exists without a disk/);
  }
  await controller.call("DeleteVolume", { volumeId });
  await controller.call("DeleteSnapshot", { snapshotId });
  await rejectsWith(status.NOT_FOUND, snapshot(stack, "snap-2", volumeId), /there is none/);
  await rejectsWith(status.NOT_FOUND, cloneOf(stack, "pvc-2", { volumeId }), /there is none/);
  await rejectsWith(status.NOT_FOUND, cloneOf(stack, "pvc-2", { snapshotId }), /there is none/);
});

Deno.test("a controller of a cluster without an election reads everything before and after, whatever it has just read", async () => {
  await using cluster = await startClusterStack({ simulator: { pools, seedDisks: 0 } });
  const { stack } = cluster;
  const other = await stack.another();
  await create(stack, "pvc-1");
  await create(other, "pvc-2", sized(95n));
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "pvc-3", sized(5n)), /, 4 GiB left/);
  await create(stack, "pvc-3", sized(4n));
});

/** A controller that leads, on a pool of 100 GiB, and knows that 1 GiB is promised. */
async function startLeader(clock: Clock = systemClock): Promise<ClusterStack> {
  const cluster = await startClusterStack({ simulator: { pools }, flags: ["--leader-election"], clock });
  await eventually(() => isReady(cluster.stack));
  await create(cluster.stack, "pvc-1");
  // The first round reads the health of all volumes beside the calls.
  const passing = () => new Promise((resolve) => setTimeout(resolve, 200));
  await eventually(async () => await cost(cluster.stack, passing) === 0);
  return cluster;
}

async function isReady({ clients }: Pick<Stack, "clients">): Promise<boolean> {
  return (await clients.identity.call("Probe", {}, 2_000)).ready?.value === true;
}

const leases = "/apis/coordination.k8s.io/v1/namespaces/storage/leases";

Deno.test("a leader creates by what it knows; once another one has the Lease, neither promises what the other did", async () => {
  await using cluster = await startLeader();
  const { stack, api } = cluster;
  assert.equal(await cost(stack, () => create(stack, "pvc-2")), 1);
  const next = await stack.another();
  const [lease] = api.all(leases);
  const heldBy = (holderIdentity: string) =>
    api.put(leases, { ...lease!, spec: { ...lease!["spec"] as object, holderIdentity } });
  heldBy("another");
  assert.match(await stack.driver.lost, /another controller has taken it/);
  // This disk stands for what the other controller promises; the first one would still find plenty of room in its own
  // sum.
  await byHand(stack, `${bigDisk}${90n * gibibyte}`);
  const before = (await stack.count()).execs;
  await rejectsWith(status.UNAVAILABLE, create(stack, "pvc-3", sized(10n)), /has lost the lead/);
  assert.equal((await stack.count()).execs, before);
  // A process that loses the lead stops its driver, and must not lead again.
  await stack.driver.stop(1_000);
  heldBy("");
  await eventually(() => isReady(next));
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(next, "pvc-3", sized(10n)), /, 8 GiB left/);
  await create(next, "pvc-3", sized(8n));
});

Deno.test("a leader that runs on after its Lease ended knows no room any more", async () => {
  const clock = movable();
  await using cluster = await startLeader(clock);
  const { stack, api } = cluster;
  api.faults.push({ match: /./, status: 503 });
  clock.ahead(15_000);
  const ranOut = () =>
    create(stack, "pvc-1").then(() => false, (error) => /could not renew/.test(String(error)));
  await eventually(ranOut);
  await byHand(stack, `${bigDisk}${90n * gibibyte}`);
  api.faults.length = 0;
  await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "pvc-2", sized(10n)), /, 9 GiB left/);
});

Deno.test("calls at once never promise more than the pool has, by whichever read they are decided", async () => {
  await using stack = await startStack({ simulator: { pools, behaviours: { interleave: true } } });
  await create(stack, "pvc-first");
  const calls = Array.from(
    { length: 40 },
    (_, index) =>
      stack.clients.controller.call(
        "CreateVolume",
        createRequest(`pvc-${index}`, sized(index % 4 === 0 ? 20n : 3n)),
      ),
  );
  const results = await Promise.allSettled(calls);
  const promised = stack.simulator.model.disks.list().filter(({ type }) => type === "file")
    .reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  assert.ok(promised <= 100n * gibibyte, `${promised / gibibyte} GiB were promised`);
  const refused = results.flatMap((result) => result.status === "rejected" ? [result.reason.code] : []);
  assert.ok(refused.length > 0 && refused.length < 40, `${refused.length} were refused`);
  assert.deepEqual([...new Set(refused)], [status.RESOURCE_EXHAUSTED]);
});

Deno.test("where another file system has got the label of a pool since it was read, no subvolume is made on that one", async () => {
  await using stack = await startStack({ simulator: { pools: [...pools, { name: "second" }] } });
  const id = await create(stack, "pvc-1");
  const { files } = stack.simulator.model;
  const base = stack.simulator.model.disks.findBySlot(id)!.filePath.split("/").slice(2, -2).join("/");
  if (base !== "") await byHand(stack, `/file add type="directory" name="second/${base}"`);
  await control(stack.simulator, "PATCH /disks/storage-pool", { "fs-label": "replaced" });
  await control(stack.simulator, "PATCH /disks/second", { "fs-label": "storage-pool-fs" });
  await create(stack, "pvc-2");
  const isOnSecond = ({ path }: { readonly path: string }) =>
    path.startsWith("second/") && path.includes("pvc-");
  assert.deepEqual(files.list().filter(isOnSecond), []);
});
