// The controller of shared directories, over SSH against a simulated router.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { directoryControllerCapabilities } from "../../src/csi/services/directory_controller.ts";
import { parseDirectoryHandle } from "../../src/volume/model/directory/handle.ts";
import { createRequest, gibibyte, rejectsWith } from "../support/controller_calls.ts";
import {
  createDirectory,
  filesBelow,
  mark,
  shared,
  startDirectoryStack,
} from "../support/directory_stack.ts";

const name = "pvc-0f8fad5b-d9cb-469f-a165-70867728950e";

Deno.test("CreateVolume makes a directory that carries its name and the cluster's mark, once", async () => {
  await using stack = await startDirectoryStack();
  const { handle, path, volumeContext } = await createDirectory(stack, name);
  assert.equal(path, `/share/k8s/${name}.${mark}`);
  assert.deepEqual(parseDirectoryHandle(handle), { hash: handle.slice(0, 8), path, name });
  assert.deepEqual(volumeContext, { addresses: "127.0.0.1", export: "/share", path, directoryMode: "0777" });
  const again = await createDirectory(stack, name);
  assert.equal(again.handle, handle);
  assert.deepEqual(filesBelow(stack, "/share/"), ["share/k8s", `share/k8s/${name}.${mark}`]);
});

Deno.test("CreateVolume puts what a StorageClass says into the volume context", async () => {
  await using stack = await startDirectoryStack();
  const parameters = {
    ...{
      addresses: "nas:2050,10.0.0.2",
      path: "/k8s/team/a",
      directoryMode: "2770",
      uid: "1000",
      gid: "100",
    },
    ...{ mntPath: "/old", "csi.storage.k8s.io/pv/name": name },
  };
  const { handle, volumeContext } = await createDirectory(stack, name, { parameters });
  const path = `/share/k8s/team/a/${name}.${mark}`;
  assert.deepEqual(volumeContext, {
    addresses: "nas:2050,10.0.0.2",
    export: "/share",
    path,
    directoryMode: "2770",
    uid: "1000",
    gid: "100",
  });
  assert.equal(parseDirectoryHandle(handle)?.path, path);
  assert.ok(stack.log.some((line) => line.includes("no effect") && line.includes("mntPath")));
});

Deno.test("CreateVolume with pathType Directory says which folder is missing", async () => {
  await using stack = await startDirectoryStack();
  const create = (path: string) =>
    createDirectory(stack, name, { parameters: { path, pathType: "Directory" } });
  await rejectsWith(status.INVALID_ARGUMENT, create("/k8s"), /that folder itself is missing/);
  await rejectsWith(
    status.INVALID_ARGUMENT,
    create("/k8s/a"),
    /its parent is missing: \/share\/k8s: path=/,
  );
  await createDirectory(stack, "first");
  await create("/k8s");
});

Deno.test("CreateVolume is not OK where a file is in the way, or the router makes no directory", async () => {
  await using stack = await startDirectoryStack();
  const { files } = stack.simulator.model;
  // The first one makes the folder above it.
  const refuse = { match: "/file add", nth: 2, times: 1, action: "error", value: "failure: no" } as const;
  stack.simulator.faults.arm(refuse);
  await rejectsWith(status.UNAVAILABLE, createDirectory(stack, name), /the router refused: "failure: no"/);
  assert.deepEqual(filesBelow(stack, "/share/"), ["share/k8s"]);
  const { path } = await createDirectory(stack, name);
  files.remove(path.slice(1));
  files.create(path.slice(1), 5n);
  await rejectsWith(status.ALREADY_EXISTS, createDirectory(stack, name), /a file of that name is there/);
});

Deno.test("CreateVolume refuses what a directory cannot be", async () => {
  await using stack = await startDirectoryStack();
  const refuses = (
    overrides: Parameters<typeof createRequest>[1],
    text: RegExp,
    code = status.INVALID_ARGUMENT,
  ) => rejectsWith(code, createDirectory(stack, name, overrides), text);
  const accessMode = { mode: "SINGLE_NODE_WRITER" } as const;
  await refuses({ volumeCapabilities: [{ block: {}, accessMode }] }, /no raw block volume/);
  await refuses(
    { volumeCapabilities: [{ mount: { fsType: "ext4" }, accessMode }] },
    /no file system of its own/,
  );
  await refuses({ volumeCapabilities: [{ mount: { mountFlags: ["soft"] }, accessMode }] }, /flag=soft/);
  await refuses({ volumeCapabilities: [] }, /volume_capabilities/);
  await refuses({ parameters: { volumePath: "/share" } }, /key="volumePath"/);
  await refuses({ parameters: { path: "/elsewhere" } }, /--base-path/);
  await refuses({ parameters: { path: "/k8s/../.." } }, /absolute path/);
  await refuses({ parameters: { path: "/" } }, /--base-path/);
  await refuses({ parameters: { path: "/k8s/b.20240101" } }, /as volumes do: b\.20240101/);
  await refuses({ parameters: { path: `/k8s/${"a".repeat(20)}` } }, /too long/);
  await refuses({ parameters: { pathType: "File" } }, /DirectoryOrCreate/);
  const range = { requiredBytes: "10", limitBytes: "9" };
  await refuses({ capacityRange: range }, /limit is below/, status.OUT_OF_RANGE);
  const source = { volumeContentSource: { volume: { volumeId: "pvc-x" } } };
  await refuses(source, /no snapshots/);
  assert.deepEqual(filesBelow(stack, "/share/"), []);
});

Deno.test("CreateVolume refuses more than the share has free; growing is advisory", async () => {
  await using stack = await startDirectoryStack();
  const { controller } = stack.clients;
  const capacityRange = { requiredBytes: String((1n << 39n) + 1n) };
  await rejectsWith(
    status.RESOURCE_EXHAUSTED,
    createDirectory(stack, name, { capacityRange }),
    /no room for it: needs 512 GiB, 512 GiB free/,
  );
  const { handle } = await createDirectory(stack, name);
  const grown = await controller.call("ControllerExpandVolume", { volumeId: handle, capacityRange });
  assert.deepEqual([grown.capacityBytes, grown.nodeExpansionRequired], [capacityRange.requiredBytes, false]);
  const { availableCapacity } = await controller.call("GetCapacity", {});
  assert.equal(availableCapacity, String(1n << 39n));
});

Deno.test("no directory is made on a share that is not shared, or holds images of block volumes", async () => {
  await using stack = await startDirectoryStack();
  const { simulator } = stack;
  const { disks, files } = simulator.model;
  const disk = () => disks.findBySlot("share")!;
  disks.replace({ ...disk(), nfsSharing: false });
  const make = () => createDirectory(stack, name);
  await rejectsWith(status.FAILED_PRECONDITION, make(), /\/disk set \[find slot="share"\] nfs-sharing=yes/);
  disks.replace({ ...disk(), nfsSharing: true });
  files.makeDirectory("share/metal-csi");
  files.create("share/metal-csi/pvc-x.img", gibibyte);
  disks.add({
    ...disk(),
    slot: "pvc-x",
    type: "file",
    filePath: "/share/metal-csi/pvc-x.img",
    pool: undefined,
    nfsSharing: false,
  });
  await rejectsWith(
    status.FAILED_PRECONDITION,
    make(),
    /images of block volumes.*first=\/share\/metal-csi\/pvc-x\.img/,
  );
  await rejectsWith(status.FAILED_PRECONDITION, stack.clients.controller.call("GetCapacity", {}), /images/);
  disks.remove(disks.findBySlot("pvc-x")!.id);
  const { pool } = disk();
  disks.replace({ ...disk(), pool: { ...pool!, mounted: false } });
  await rejectsWith(status.UNAVAILABLE, make(), /mounted no disk/);
});

Deno.test("ValidateVolumeCapabilities confirms what a directory can be, and knows static volumes", async () => {
  await using stack = await startDirectoryStack();
  const { controller } = stack.clients;
  const { handle } = await createDirectory(stack, name);
  const validate = (volumeId: string, volumeContext = {}, capability = shared) =>
    controller.call("ValidateVolumeCapabilities", {
      volumeId,
      volumeContext,
      volumeCapabilities: [capability],
    });
  assert.ok((await validate(handle)).confirmed);
  const block = { block: {}, accessMode: { mode: "SINGLE_NODE_WRITER" } } as const;
  const refused = await validate(handle, {}, block);
  assert.equal(refused.confirmed, null);
  assert.match(refused.message, /raw block/);
  assert.ok((await validate("media", { addresses: "nas", path: "/media" })).confirmed);
  await rejectsWith(status.INVALID_ARGUMENT, validate("media", { path: "/media" }), /addresses/);
  await rejectsWith(status.NOT_FOUND, validate("media"));
  await rejectsWith(status.NOT_FOUND, validate(handle.replaceAll(name, "gone")));
});

Deno.test("calls that directories do not have are not advertised, and answer UNIMPLEMENTED", async () => {
  await using stack = await startDirectoryStack();
  const { controller, identity } = stack.clients;
  const { capabilities } = await controller.call("ControllerGetCapabilities", {});
  assert.deepEqual(capabilities.map(({ rpc }) => rpc?.type), directoryControllerCapabilities);
  const { name: driver } = await identity.call("GetPluginInfo", {});
  assert.equal(driver, "rds-directory.csi.srvlab.io");
  await rejectsWith(
    status.UNIMPLEMENTED,
    controller.call("CreateSnapshot", { name: "s", sourceVolumeId: "v" }),
    /a shared directory has none: it is a folder/,
  );
  await rejectsWith(status.UNIMPLEMENTED, controller.call("ListVolumes", {}), /PersistentVolumes/);
  const publish = controller.call("ControllerPublishVolume", {
    volumeId: "v",
    nodeId: "node-1",
    volumeCapability: shared,
  });
  await rejectsWith(status.UNIMPLEMENTED, publish);
});
