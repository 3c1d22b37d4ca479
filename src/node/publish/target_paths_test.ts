import { refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  call,
  ext4,
  FakeNode,
  nqn,
  publishContext,
  stagingPath,
  targetPath,
} from "../../../tests/fakes/node_deps.ts";
import { VolumeError } from "../../volume/errors.ts";

const other = {
  volumeId: "pvc-2",
  stagingPath: "/kubelet/staging/pvc-2",
  targetPath: "/kubelet/pods/2/mount",
};
const otherContext = publishContext({ nqn: nqn.replace("pvc-1", "pvc-2") });

/** A node on which two volumes are staged, and the other one is published. */
async function twoVolumes(capability = ext4): Promise<FakeNode> {
  const node = new FakeNode();
  const device = node.newDevice({ path: "/dev/loop4", deviceNumber: "7:4" });
  node.devices.set(otherContext.nqn!, device);
  await node.stage({ capability });
  await node.stage({ ...other, capability }, otherContext);
  await node.publish({ ...other, capability, publishContext: otherContext });
  return node;
}

Deno.test("unpublish() of a block volume leaves another volume's target alone", async () => {
  const node = await twoVolumes(block);
  const before = structuredClone(node.table);
  await assert.rejects(node.unpublish(other.targetPath), refusal("precondition", /pvc-2 is published there/));
  assert.deepEqual(node.table, before);
});

const foreign: readonly [string, string, Record<string, string>][] = [
  ["a tmpfs", "0:30", { filesystem: "tmpfs" }],
  ["a server's folder", "0:31", { filesystem: "nfs4" }],
  ["another disk", "8:1", { filesystem: "ext4" }],
];

for (const [name, deviceNumber, change] of foreign) {
  Deno.test(`unpublish() leaves ${name} alone that is mounted at the target`, async () => {
    const node = await twoVolumes();
    node.addMount(deviceNumber, targetPath, change);
    await assert.rejects(node.unpublish(), refusal("precondition", /mounted there|another device/));
    assert.equal(node.table.at(-1)?.mountPoint, targetPath);
  });
}

Deno.test("unpublish() unmounts a target of the volume's device that is not recorded", async () => {
  const node = await twoVolumes();
  await node.publish();
  node.setStagingState({ published: [] });
  await node.unpublish();
  assert.ok(!node.table.some((entry) => entry.mountPoint === targetPath));
});

Deno.test("unpublish() succeeds when state files are lost or damaged, also other volumes'", async () => {
  for (const text of [undefined, "{"]) {
    const node = await twoVolumes();
    await node.publish();
    for (const id of ["pvc-1", "pvc-2"]) {
      const path = `/state/volumes/${id}.json`;
      if (text === undefined) node.paths.nodes.delete(path);
      else node.paths.nodes.set(path, { kind: "file", text });
    }
    await node.unpublish();
    assert.ok(!node.table.some((entry) => entry.mountPoint === targetPath));
  }
});

for (const capability of [ext4, block]) {
  Deno.test(`stage() of a ${capability.access} volume refuses the staging path of another one, and undoes its own steps`, async () => {
    const node = await twoVolumes(capability);
    await node.unstage();
    const before = structuredClone([node.table, [...node.paths.nodes]]);
    const request = { capability, stagingPath: other.stagingPath };
    const refused = capability === block ? refusal : unsettled; // The other file system is mounted there.
    await assert.rejects(node.stage(request), refused("precondition", /another volume uses it/));
    assert.deepEqual([node.table, [...node.paths.nodes]], before);
    assert.equal(node.device.connected, false);
  });

  Deno.test(`unstage() of a ${capability.access} volume refuses the staging path of another one`, async () => {
    const node = await twoVolumes(capability);
    await node.service.unpublish(other, call());
    const before = structuredClone([node.table, [...node.paths.nodes]]);
    const request = { volumeId: "pvc-1", stagingPath: other.stagingPath };
    await assert.rejects(node.service.unstage(request, call()), refusal("precondition", /another volume/));
    assert.deepEqual([node.table, [...node.paths.nodes]], before);
  });
}

const overlapping = [
  ...[stagingPath, `${stagingPath}/device`, "/kubelet/staging", other.stagingPath],
  ...[`${other.targetPath}/in/it`, "/kubelet/pods/2"],
];

for (const path of overlapping) {
  Deno.test(`publish() throws invalid for the target ${path}, which overlaps a path of a volume`, async () => {
    const node = await twoVolumes(block);
    const before = node.operations.length;
    const request = { capability: block, targetPath: path };
    await assert.rejects(node.publish(request), refusal("invalid", /overlap/));
    assert.equal(node.operations.slice(before).length, 0);
  });
}

for (
  const path of [`${other.stagingPath}/in/it`, `${other.targetPath}/in/it`, other.targetPath, "/kubelet/pods"]
) {
  Deno.test(`stage() leaves alone the staging path ${path}, which overlaps another volume's path`, async () => {
    const node = await twoVolumes();
    await node.unstage();
    const before = structuredClone([node.table, [...node.paths.nodes.keys()]]);
    const refused = path === other.targetPath ? unsettled : refusal; // It is mounted there.
    await assert.rejects(node.stage({ stagingPath: path }), refused("precondition", /another volume/));
    assert.deepEqual([node.table, [...node.paths.nodes.keys()]], before);
    assert.ok(!node.operations.slice(-8).includes("connect"));
  });
}

Deno.test("publish() that fails leaves alone what another volume has put at the target meanwhile", async () => {
  const node = await twoVolumes();
  node.before = (operation) => {
    if (operation !== "bind") return;
    node.addMount("7:4", targetPath);
    throw new VolumeError("internal", "injected");
  };
  await assert.rejects(node.publish(), unsettled("internal", /injected/));
  assert.deepEqual(node.table.at(-1)?.mountPoint, targetPath);
  assert.deepEqual(node.stagingState?.published, []);
});

for (const capability of [ext4, block]) {
  for (const name of ["loop3", "loop9"]) {
    Deno.test(`stage() of a ${capability.access} volume refuses a device that a stale bind of ${name} shows, and disconnects`, async () => {
      const node = new FakeNode();
      node.addMount("0:6", "/stale", { filesystem: "devtmpfs", root: `/${name}//deleted` });
      node.paths.nodes.set("/stale", { kind: "block", deviceNumber: "7:3" });
      await assert.rejects(node.stage({ capability }), refusal("in-use", /is bound at.*\/stale/));
      assert.deepEqual([node.formats.length, node.device.connected, node.stagingState], [
        0,
        false,
        undefined,
      ]);
      // Another device's; or files that were replaced since, as the kubelet's secrets are.
      const others = [{ kind: "block", deviceNumber: "7:9" }, { kind: "file" }, {
        kind: "directory",
      }] as const;
      for (const shown of name === "loop3" ? others.slice(0, 1) : others) {
        node.paths.nodes.set("/stale", shown);
        await node.stage({ capability });
      }
    });
  }
}

Deno.test("stage() of a block volume refuses a device on which a file system is mounted", async () => {
  const node = new FakeNode();
  node.device.connected = true;
  node.addMount("7:3", "/somewhere");
  await assert.rejects(
    node.stage({ capability: block }),
    unsettled("in-use", /mounted at \/somewhere/),
  );
  assert.ok(!node.operations.includes("setReadOnly"));
});

/** Where the kubelet itself binds the device of a pod's raw block volume. */
const kubeletsOwn = "/kubelet/plugins/kubernetes.io/csi/volumeDevices/pv/dev/pod";

Deno.test("stage() of a published block volume again ignores the kubelet's own bind, unless it is stale", async () => {
  const node = new FakeNode();
  await node.stage({ capability: block });
  await node.publish({ capability: block });
  node.addMount("0:6", kubeletsOwn, { filesystem: "devtmpfs", root: "/loop3" });
  node.paths.nodes.set(kubeletsOwn, { kind: "block", deviceNumber: "7:3" });
  await node.stage({ capability: block });
  assert.equal(node.stagingState?.staged, true);
  node.table = node.table.map((entry) =>
    entry.mountPoint === kubeletsOwn ? { ...entry, root: "/loop3//deleted" } : entry
  );
  await assert.rejects(node.stage({ capability: block }), unsettled("in-use", /is bound at/));
});

Deno.test("unpublish() of a block volume succeeds when its state was lost and a stage refused meanwhile", async () => {
  const node = new FakeNode();
  await node.stage({ capability: block });
  await node.publish({ capability: block });
  node.paths.nodes.delete("/state/volumes/pvc-1.json");
  await assert.rejects(node.stage({ capability: block }), unsettled("in-use", /is bound at/));
  await node.unpublish();
  await node.unstage();
  assert.deepEqual([node.table, node.stagingState], [[], undefined]);
});

Deno.test("unpublish() of a block volume removes the bind of a gone device that its new record does not have", async () => {
  const node = new FakeNode();
  await node.stage({ capability: block });
  await node.publish({ capability: block });
  node.paths.nodes.delete("/state/volumes/pvc-1.json");
  // The router was restarted: the kernel has removed the first device with its node.
  Object.assign(node.device, { connected: false, path: "/dev/loop4", deviceNumber: "7:4" });
  node.table = node.table.map((entry) => ({ ...entry, root: "/loop3//deleted" }));
  await node.stage({ capability: block });
  await node.unpublish();
  await node.unstage();
  assert.deepEqual([node.table, node.stagingState], [[], undefined]);
});
