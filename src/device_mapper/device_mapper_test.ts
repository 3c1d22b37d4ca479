import assert from "node:assert/strict";
import { FakeDeviceMapper } from "../../tests/fakes/device_mapper.ts";
import { FakeKernelFiles } from "../../tests/fakes/kernel_files.ts";
import { call } from "../../tests/fakes/node_deps.ts";
import { FakeProcesses } from "../../tests/fakes/processes.ts";
import { rejectsWith } from "../../tests/fakes/volume_errors.ts";
import { VolumeError } from "../volume/errors.ts";
import type { ProvenDevice } from "../volume/ports/node_ports.ts";
import { DeviceMapper } from "./device_mapper.ts";

const identity = { name: "rds-csi-pvc-1", uuid: "RDSCSI-pvc-1:1-0a0b0c0d" };

function below(deviceNumber: string, sizeBytes = 1n << 30n): ProvenDevice {
  const found = {
    path: "/dev/nvme0n1",
    deviceNumber,
    sizeBytes,
    nqn: "nqn.x:pvc-1:1-0a0b0c0d",
    nsid: 1,
    uniqueId: "",
  };
  return found as ProvenDevice;
}

function fake() {
  const files = new FakeKernelFiles();
  const kernel = new FakeDeviceMapper(files);
  const processes = new FakeProcesses();
  processes.script = (run) => kernel.run(run);
  kernel.devices.add("259:1");
  return { files, kernel, processes, maps: new DeviceMapper(processes, files) };
}

Deno.test("make() makes a map that lets writes wait while its device is gone, and reads it back", async () => {
  const { kernel, maps, processes } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  assert.deepEqual(map, {
    ...identity,
    path: "/dev/dm-0",
    deviceNumber: "253:0",
    sizeBytes: 1n << 30n,
    below: ["259:1"],
    on: "259:1",
    suspended: false,
    pending: 0,
    completed: 0,
  });
  assert.equal(kernel.write(identity.name), "done");
  kernel.devices.delete("259:1");
  assert.equal(kernel.write(identity.name), "waits");
  assert.equal(processes.runs[0]!.tool, "dmsetup");
});

Deno.test("make() refuses a map of that name with another UUID, and leaves it as it is", async () => {
  const { kernel, maps } = fake();
  await maps.make({ ...identity, uuid: "RDSCSI-pvc-1:9-00000000" }, below("259:1"), call());
  await rejectsWith(maps.make(identity, below("259:1"), call()), "identity-mismatch");
  assert.equal(kernel.maps.get(identity.name)!.uuid, "RDSCSI-pvc-1:9-00000000");
});

Deno.test("make() finishes a map that was left without a table", async () => {
  const { kernel, maps } = fake();
  kernel.maps.set(identity.name, { minor: 7, uuid: identity.uuid });
  kernel.show();
  assert.equal((await maps.find(identity.name))!.sizeBytes, 0n);
  assert.equal((await maps.make(identity, below("259:1"), call())).path, "/dev/dm-7");
  assert.equal(kernel.write(identity.name), "done");
});

Deno.test("make() is unavailable where the kernel has no such target, and leaves nothing", async () => {
  const { kernel, maps } = fake();
  kernel.hasMultipath = false;
  await rejectsWith(maps.make(identity, below("259:1"), call()), "unavailable");
  assert.match(await maps.obstacle(call()) ?? "", /no dm-multipath/);
  assert.equal(kernel.maps.size, 0);
});

Deno.test("obstacle() reports a missing dmsetup, and nothing when all is there", async () => {
  const { maps, processes } = fake();
  const { script } = processes;
  processes.script = () => {
    throw new VolumeError("precondition", "Cannot run dmsetup because it is not installed");
  };
  assert.match(await maps.obstacle(call()) ?? "", /not installed/);
  processes.script = script;
  assert.equal(await maps.obstacle(call()), undefined);
  const runs = processes.runs.length;
  assert.equal(await maps.obstacle(call()), undefined);
  assert.equal(processes.runs.length, runs, "what is there stays there");
});

Deno.test("reload() lets waiting I/O go on, on another device and under the same number", async () => {
  const { kernel, maps } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  kernel.devices.delete("259:1");
  kernel.show();
  assert.equal(kernel.write(identity.name), "waits");
  assert.deepEqual((await maps.find(identity.name))!.below, ["gone"]);
  kernel.devices.add("259:2");
  const reloaded = await maps.reload(map, below("259:2"), map.sizeBytes, call());
  assert.equal(reloaded.deviceNumber, map.deviceNumber);
  assert.deepEqual(reloaded.below, ["259:2"]);
  assert.equal(kernel.write(identity.name), "done");
});

Deno.test("reload() replaces a table that a crash left loaded", async () => {
  const { kernel, maps } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  kernel.devices.add("259:2").add("259:3");
  kernel.maps.get(identity.name)!.inactive = {
    sectors: "2097152",
    path: "259:2",
    queues: true,
    failed: false,
  };
  kernel.show();
  assert.deepEqual((await maps.find(identity.name))!.below, ["259:1", "259:2"]);
  assert.deepEqual((await maps.reload(map, below("259:3"), map.sizeBytes, call())).below, ["259:3"]);
});

Deno.test("reload() refuses a map that was made again for another epoch, and one that is gone", async () => {
  const { maps } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  const older = { ...map, uuid: "RDSCSI-pvc-1:0-00000000" };
  await rejectsWith(maps.reload(older, below("259:1"), map.sizeBytes, call()), "identity-mismatch");
  await maps.remove(map, call());
  await rejectsWith(maps.reload(map, below("259:1"), map.sizeBytes, call()), "identity-mismatch");
});

Deno.test("reload() does not make a map smaller that has grown since its size was read", async () => {
  const { kernel, maps, processes } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  const { script } = processes;
  processes.script = async (run) => {
    if (run.options.args[0] === "load") {
      processes.script = script;
      await maps.reload(map, below("259:1", 2n << 30n), 2n << 30n, call());
    }
    return await script(run);
  };
  await rejectsWith(maps.reload(map, below("259:1", 2n << 30n), map.sizeBytes, call()), "unavailable");
  assert.equal((await maps.find(identity.name))!.sizeBytes, 2n << 30n);
  assert.equal(kernel.maps.get(identity.name)!.inactive, undefined);
});

Deno.test("reload() is unavailable when the kernel shows another table than was loaded", async () => {
  const { kernel, maps, processes } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  kernel.devices.add("259:2");
  processes.script = (run) => run.options.args[0] === "resume" ? 0 : kernel.run(run);
  await rejectsWith(maps.reload(map, below("259:2"), map.sizeBytes, call()), "unavailable");
});

Deno.test("failPath() lets writes wait although the device is there, until the map is reloaded", async () => {
  const { kernel, maps } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  await maps.failPath(map, call());
  assert.equal(kernel.write(identity.name), "waits");
  assert.equal((await maps.table(map, call())).failed, true);
  await maps.reload(map, below("259:1"), map.sizeBytes, call());
  assert.equal(kernel.write(identity.name), "done");
});

Deno.test("endQueueing() fails waiting I/O, and table() reports that", async () => {
  const { kernel, maps } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  assert.deepEqual(await maps.table(map, call()), { queues: true, path: "259:1", failed: false });
  kernel.devices.delete("259:1");
  assert.equal(kernel.write(identity.name), "waits");
  await maps.endQueueing(map, call());
  assert.equal(kernel.write(identity.name), "fails");
  assert.deepEqual(await maps.table(map, call()), { queues: false, path: "259:1", failed: true });
  await maps.endQueueing(map, call());
});

Deno.test("endQueueing() is unavailable when the kernel goes on queueing", async () => {
  const { kernel, maps, processes } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  processes.script = (run) => run.options.args[0] === "message" ? 0 : kernel.run(run);
  await rejectsWith(maps.endQueueing(map, call()), "unavailable");
});

Deno.test("remove() is in-use while the map is open, and OK when it is gone", async () => {
  const { kernel, maps } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  kernel.open.add(identity.name);
  await rejectsWith(maps.remove(map, call()), "in-use");
  assert.equal(kernel.maps.size, 1);
  kernel.open.clear();
  await maps.remove(map, call());
  assert.equal(kernel.maps.size, 0);
  await maps.remove(map, call());
});

Deno.test("remove() and endQueueing() leave another epoch's map of that name alone", async () => {
  const { kernel, maps } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  const older = { ...map, uuid: "RDSCSI-pvc-1:0-00000000" };
  await maps.endQueueing(older, call());
  await maps.remove(older, call());
  assert.deepEqual(kernel.maps.get(identity.name)?.table?.queues, true);
});

Deno.test("list() shows this driver's maps only; find() starts no process and follows a new number", async () => {
  const { kernel, maps, processes } = fake();
  kernel.maps.set("vg-root", { minor: 40, uuid: "LVM-abc" });
  const map = await maps.make(identity, below("259:1"), call());
  assert.deepEqual(await maps.list(), [map]);
  const runs = processes.runs.length;
  kernel.maps.set(identity.name, { ...kernel.maps.get(identity.name)!, minor: 41 });
  kernel.show();
  assert.equal((await maps.find(identity.name))?.path, "/dev/dm-41");
  kernel.maps.delete(identity.name);
  kernel.show();
  assert.equal(await maps.find(identity.name), undefined);
  assert.equal(processes.runs.length, runs);
});

Deno.test("reload() during a fence lets no write wait again, whenever the fence comes", async () => {
  for (const at of ["before load", "after load", "before resume", "after resume"]) {
    const { kernel, maps, processes } = fake();
    const map = await maps.make(identity, below("259:1"), call());
    kernel.devices.add("259:2");
    let isFenced = false;
    const fenceAt = async (step: string) => {
      if (step !== at || isFenced) return;
      isFenced = true;
      await maps.endQueueing(map, call());
    };
    processes.script = async (run) => {
      await fenceAt(`before ${run.options.args[0]}`);
      const result = kernel.run(run);
      await fenceAt(`after ${run.options.args[0]}`);
      return result;
    };
    const reloaded = maps.reload(map, below("259:2"), 1n << 30n, call(), { unlessEnded: true });
    await rejectsWith(reloaded, "unavailable", /its queueing was ended/);
    kernel.devices.clear();
    assert.equal(kernel.write(identity.name), "fails", at);
    assert.equal(kernel.maps.get(identity.name)!.inactive, undefined, at);
  }
});

Deno.test("reload() for a stage lets a map wait again whose queueing was ended", async () => {
  const { kernel, maps } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  await maps.endQueueing(map, call());
  await maps.reload(map, below("259:1"), 1n << 30n, call());
  kernel.devices.clear();
  assert.equal(kernel.write(identity.name), "waits");
});

Deno.test("a command goes by the map's UUID: another map that took its name meanwhile is left alone", async () => {
  const { kernel, maps, processes } = fake();
  const map = await maps.make(identity, below("259:1"), call());
  const other = { ...kernel.maps.get(identity.name)!, uuid: "RDSCSI-pvc-1:2-00000000" };
  processes.script = (run) => {
    kernel.maps.set(identity.name, other);
    return kernel.run(run);
  };
  await rejectsWith(maps.failPath(map, call()), "unavailable", /No such device/);
  assert.equal(other.table!.failed, false);
});
