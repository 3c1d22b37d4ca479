// What becomes of deleted directories, over SSH against simulated routers that remove non-empty directories, or do not.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { rejectsWith } from "../support/controller_calls.ts";
import {
  createDirectory,
  filesBelow,
  mark,
  sharePools,
  startDirectoryStack,
} from "../support/directory_stack.ts";
import { startClusterStack } from "../support/cluster_stack.ts";
import type { Stack } from "../support/stack.ts";
import { aPersistentVolume, testDriver } from "../fakes/kube_client.ts";
import { volumesPath } from "../../src/kubernetes/objects.ts";
import { systemClock } from "../../src/host/clock.ts";
import { eventually } from "../support/eventually.ts";

const name = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";
const removals = ["recursive", "must-be-empty"] as const;

/** Files and directories of a volume, as its pods leave them. */
function fill({ simulator }: Stack, path: string): void {
  const { files } = simulator.model;
  files.makeDirectories(`${path.slice(1)}/a/b/c`);
  for (const file of ["x", "a/y.txt", "a/b/c/z (copy).img", "a/b/q.deadbeef"]) {
    files.create(`${path.slice(1)}/${file}`, 10n);
  }
}

async function remove({ clients }: Stack, volumeId: string): Promise<void> {
  await clients.controller.call("DeleteVolume", { volumeId });
}

for (const directoryRemoval of removals) {
  Deno.test(`a deleted directory is gone at once, and its content soon, on a router with ${directoryRemoval}`, async () => {
    await using stack = await startDirectoryStack({
      behaviours: { directoryRemoval },
      clusterHashes: [mark, "deadbeef"],
    });
    const { handle, path } = await createDirectory(stack, name);
    const kept = await createDirectory(stack, `${name.slice(0, -1)}f`);
    fill(stack, path);
    fill(stack, kept.path);
    await remove(stack, handle);
    assert.equal(stack.simulator.model.files.find(path.slice(1)), undefined);
    await eventually(() => filesBelow(stack, path).length === 0);
    assert.equal(filesBelow(stack, kept.path).length, 8);
    await remove(stack, handle);
    await eventually(async () => {
      const metrics = await (await fetch(`${stack.driver.metricsUrl}/metrics`)).text();
      return metrics.includes('rds_csi_directory_removals_pending{backend="default"} 0\n');
    });
  });

  Deno.test(`a removal goes on after a restart of the controller, with ${directoryRemoval}`, async () => {
    await using stack = await startDirectoryStack({
      behaviours: { directoryRemoval },
      clusterHashes: [mark, "deadbeef"],
    });
    const { files } = stack.simulator.model;
    const left = `/share/k8s/${name}.${mark}.deleted-00112233`;
    files.makeDirectories(left.slice(1));
    fill(stack, left);
    files.makeDirectories(`share/k8s/${name}.ffffffff.deleted-00112233/a`);
    await stack.another();
    await eventually(() => filesBelow(stack, left).length === 0);
    assert.equal(filesBelow(stack, "/share/k8s/").length, 2, "another cluster's directory stays");
  });
}

Deno.test("a directory whose handle names other addresses is gone only where the router shows that it was deleted here", async () => {
  await using stack = await startDirectoryStack();
  const { handle, path } = await createDirectory(stack, name, { parameters: { addresses: "nas" } });
  await remove(stack, handle);
  await eventually(() => filesBelow(stack, path).length === 0);
  await remove(stack, handle);
  const other = handle.replaceAll(name, `${name.slice(0, -1)}f`);
  await rejectsWith(
    status.FAILED_PRECONDITION,
    remove(stack, other),
    /server with other addresses, or on another disk/,
  );
});

Deno.test("a directory that is not on the disk that is mounted now is gone only where that shows that it was deleted here", async () => {
  await using stack = await startDirectoryStack();
  const { disks } = stack.simulator.model;
  const mount = (uuid: string) => {
    const disk = disks.findBySlot("share")!;
    disks.replace({ ...disk, extra: { ...disk.extra, "fs-uuid": uuid } });
  };
  mount("11111111-0000-4000-8000-000000000000");
  const { handle, path } = await createDirectory(stack, name);
  assert.equal((await createDirectory(stack, name)).handle, handle);
  const gone = handle.replaceAll(name, `${name.slice(0, -1)}f`);
  await remove(stack, gone);
  mount("22222222-0000-4000-8000-000000000000");
  await rejectsWith(status.FAILED_PRECONDITION, remove(stack, gone), /or on another disk/);
  // What was copied to the new disk is deleted there, also when the answer was lost.
  await remove(stack, handle);
  await eventually(() => filesBelow(stack, path).length === 0);
  await remove(stack, handle);
});

Deno.test("a name that was deleted can be made again while the earlier directory is still being removed", async () => {
  await using stack = await startDirectoryStack();
  const first = await createDirectory(stack, name);
  fill(stack, first.path);
  await remove(stack, first.handle);
  const second = await createDirectory(stack, name);
  assert.equal(second.handle, first.handle);
  await eventually(() => filesBelow(stack, "/share/k8s/").length === 1);
  await remove(stack, second.handle);
  await eventually(() => filesBelow(stack, "/share/k8s/").length === 0);
});

Deno.test("a directory is not made again while the router may still carry out a deletion whose end is unknown", async () => {
  await using stack = await startDirectoryStack();
  const { handle, path } = await createDirectory(stack, name);
  const late = { match: "/file set", nth: 1, times: 1, action: "error", value: "action timed out" } as const;
  stack.simulator.faults.arm(late);
  await rejectsWith(status.UNAVAILABLE, remove(stack, handle));
  await remove(stack, handle);
  assert.equal(stack.simulator.model.files.find(path.slice(1)), undefined);
  await rejectsWith(status.ABORTED, createDirectory(stack, name), /may still happen/);
  await createDirectory(stack, `${name.slice(0, -1)}f`);
});

Deno.test("DeleteVolume touches nothing that this cluster has not made below its folders", async () => {
  const short = "cache-1";
  await using stack = await startDirectoryStack();
  const { files } = stack.simulator.model;
  const { handle, path } = await createDirectory(stack, short);
  const hash = handle.slice(0, 8);
  files.makeDirectories(`share/other/${short}.${mark}`);
  files.makeDirectories(`share/k8s/${short}.ffffffff`);
  files.makeDirectories(`${path.slice(1)}/inner.${mark}`);
  const before = filesBelow(stack, "/share/");
  const refuses = (one: string, label: string, text: RegExp) =>
    rejectsWith(status.FAILED_PRECONDITION, remove(stack, `${hash}@${one}@${label}`), text);
  await refuses(`/share/other/${short}.${mark}`, short, /--base-path/);
  await refuses(`/share/k8s`, short, /--base-path/);
  await refuses(`/share/k8s/${short}.ffffffff`, short, /this cluster's mark/);
  await refuses(path, "other", /this cluster's mark/);
  await refuses(`${path}/inner.${mark}`, "inner", /is in a volume/);
  for (const fixed of ["media", "pvc-static", `${hash}@/share/gone`]) await remove(stack, fixed);
  await rejectsWith(status.INVALID_ARGUMENT, remove(stack, ""));
  assert.deepEqual(filesBelow(stack, "/share/"), before);
});

Deno.test("DeleteVolume answers OK for a directory that is gone only while its share is mounted", async () => {
  await using stack = await startDirectoryStack();
  const { disks, files } = stack.simulator.model;
  const { handle, path } = await createDirectory(stack, name);
  const disk = disks.findBySlot("share")!;
  disks.replace({ ...disk, pool: { ...disk.pool!, mounted: false } });
  await rejectsWith(status.UNAVAILABLE, remove(stack, handle), /mounted no disk/);
  disks.replace(disk);
  assert.ok(files.find(path.slice(1)));
  files.remove(path.slice(1));
  await remove(stack, handle);
});

Deno.test("a directory in which another disk is mounted is not deleted", async () => {
  await using stack = await startDirectoryStack({ pools: [...sharePools, { name: "usb1" }] });
  const { disks } = stack.simulator.model;
  const { handle, path } = await createDirectory(stack, name);
  fill(stack, path);
  const usb = disks.findBySlot("usb1")!;
  disks.replace({ ...usb, pool: { ...usb.pool!, mountPoint: `${path.slice(1)}/a` } });
  const before = filesBelow(stack, path);
  await rejectsWith(status.FAILED_PRECONDITION, remove(stack, handle), /mounted another disk in it/);
  assert.deepEqual(filesBelow(stack, path), before);
});

Deno.test("after a boot nothing is made or deleted on a share until the router has listed its disks", async () => {
  await using stack = await startDirectoryStack({}, ["--settle-time", "60s"]);
  const { disks, system } = stack.simulator.model;
  const { controller } = stack.clients;
  const { handle, path } = await createDirectory(stack, name);
  fill(stack, path);
  await control(stack.simulator, "POST /reboot", { downMs: 1 });
  await eventually(() => disks.findBySlot("share")?.pool?.mounted === true && system.uptimeMs < 60_000);
  const before = filesBelow(stack, "/share/");
  const late = /booted only/;
  await rejectsWith(status.UNAVAILABLE, createDirectory(stack, `${name.slice(0, -1)}f`), late);
  await rejectsWith(status.UNAVAILABLE, controller.call("GetCapacity", {}), late);
  await rejectsWith(status.UNAVAILABLE, remove(stack, handle), late);
  const gone = handle.replaceAll(name, "gone");
  await rejectsWith(status.UNAVAILABLE, remove(stack, gone), late);
  const expand = (volumeId: string) =>
    controller.call("ControllerExpandVolume", { volumeId, capacityRange: { requiredBytes: "10" } });
  await rejectsWith(status.UNAVAILABLE, expand(gone), late);
  await expand(handle);
  assert.deepEqual(filesBelow(stack, "/share/"), before);
});

Deno.test("after a take-over no directory is made again that a rename of the earlier leader may still take", async () => {
  let aheadMs = 0;
  const clock = {
    ...systemClock,
    monotonicMs: () => systemClock.monotonicMs() + aheadMs,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms, signal),
    timer: (ms: number, callback: () => void) => systemClock.timer(ms, callback),
  };
  await using cluster = await startClusterStack({
    clock,
    simulator: { pools: sharePools, basePaths: ["/share"], clusterHashes: [mark] },
    flags: ["--kind", "directory", "--base-path", "/share/k8s", "--leader-election"],
  });
  const { stack } = cluster;
  await eventually(() => stack.clients.controller.call("GetCapacity", {}).then(() => true, () => false));
  const { handle, path } = await createDirectory(stack, name);
  fill(stack, path);
  await remove(stack, handle);
  await rejectsWith(status.ABORTED, createDirectory(stack, name), /may still happen/);
  await createDirectory(stack, `${name.slice(0, -1)}f`);
  assert.ok(filesBelow(stack, path).length > 1, "it is kept that long");
  aheadMs = 600_000;
  await eventually(async () =>
    (await createDirectory(stack, name).catch(() => undefined))?.handle === handle
  );
});

Deno.test("a directory that several PersistentVolumes name is not deleted", async () => {
  await using cluster = await startClusterStack({
    simulator: { pools: sharePools, basePaths: ["/share"], clusterHashes: [mark] },
    flags: ["--kind", "directory", "--base-path", "/share/k8s", "--driver-name", testDriver],
  });
  const { stack, api } = cluster;
  const { handle, path } = await createDirectory(stack, name);
  const object = aPersistentVolume(handle);
  for (const pv of ["pv-a", "pv-b"]) api.put(volumesPath, { ...object, metadata: { name: pv } });
  await rejectsWith(status.FAILED_PRECONDITION, remove(stack, handle), /persistentvolumes=pv-a, pv-b/);
  assert.notEqual(stack.simulator.model.files.find(path.slice(1)), undefined);
  api.delete(volumesPath, "pv-a");
  await remove(stack, handle);
  assert.equal(stack.simulator.model.files.find(path.slice(1)), undefined);
});
