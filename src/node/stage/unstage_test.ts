import { refusal } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  breakEachStep,
  ext4,
  FakeNode,
  injected,
  nqn,
  stagingPath,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";

const deviceFile = `${stagingPath}/device`;

async function staged(capability: Capability): Promise<FakeNode> {
  const node = new FakeNode();
  await node.stage({ capability });
  return node;
}

function assertGone(node: FakeNode): void {
  assert.deepEqual([node.table, node.device.connected, node.stagingState], [[], false, undefined]);
  assert.equal(node.paths.nodes.has(deviceFile), false);
}

for (const capability of [ext4, block]) {
  const kind = capability.access;

  Deno.test(`unstage() of a ${kind} volume succeeds after a failure at any step, and twice`, async () => {
    await breakEachStep(() => staged(capability), (node) => node.unstage(), async (node) => {
      assert.notEqual(node.stagingState, undefined, "its state is kept until the end");
      await node.unstage();
      assertGone(node);
      await node.unstage();
    });
  });

  Deno.test(`unstage() of a ${kind} volume counts a process that cannot be inspected as one that has it open`, async () => {
    const node = await staged(capability);
    node.holder = { certain: false, description: "perhaps process 1" };
    await assert.rejects(node.unstage(), refusal("in-use", /process 1/));
    node.sparesOpenDevices = true;
    await node.unstage();
    assertGone(node);
  });

  Deno.test(`unstage() of a ${kind} volume refuses to disconnect while another process claims the device`, async () => {
    const node = await staged(capability);
    node.claimed = true;
    const text = /exclusively, and its user was not found; searched: .*mount namespaces: volume=pvc-1; .*ZFS/;
    await assert.rejects(node.unstage(), refusal("in-use", text));
    assert.equal(node.device.connected, true);
  });

  Deno.test(`unstage() of a ${kind} volume succeeds when its device is gone`, async () => {
    const node = await staged(capability);
    node.deps.connector.find = () => Promise.resolve(undefined);
    await node.unstage();
    assertGone(node);
  });

  Deno.test(`unstage() of a ${kind} volume does not end while the connector still shows it`, async () => {
    const node = await staged(capability);
    node.deps.connector.disconnect = () => Promise.resolve();
    await assert.rejects(node.unstage(), refusal("unavailable", /still here/));
    assert.notEqual(node.stagingState, undefined);
  });
}

Deno.test("unstage() starts no child to resolve a staging path on the file system of the state folder", async () => {
  const node = await staged(ext4);
  node.addMount("8:1", "/");
  const { mountPoint } = node.paths;
  const asked: string[] = [];
  node.paths.mountPoint = (path) => {
    asked.push(path);
    return mountPoint(path);
  };
  await node.unstage();
  assert.deepEqual([asked, node.device.connected, node.stagingState], [[], false, undefined]);
});

const users: readonly [string, (node: FakeNode) => void, RegExp][] = [
  [
    "the node has activated what is written in it",
    (node) => node.layers = ["/dev/md127 (raid1)"],
    /this node itself uses .* by \/dev\/md127 \(raid1\)/,
  ],
  ["it is open", (node) => node.holder = { certain: true, description: "process 7 (qemu)" }, /process 7/],
  ["a partition of it is mounted", (node) => {
    node.partitions = [{ path: "/dev/loop3p1", deviceNumber: "259:9" }];
    node.addMount("259:9", "/mnt");
  }, /\/dev\/loop3p1 is mounted at \/mnt: .*unmount it/],
  ["the node swaps to a partition of it", (node) => {
    node.partitions = [{ path: "/dev/loop3p1", deviceNumber: "259:9" }];
    node.swaps = ["/dev/loop3p1"];
  }, /this node swaps to \/dev\/loop3p1: .*swapoff/],
  [
    "the host's multipath has it",
    (node) => node.layers = ["/dev/dm-3 (mpatha, mpath)"],
    /by \/dev\/dm-3 \(mpatha, mpath\).*multipath -f \/dev\/dm-3/,
  ],
  ["its device is mounted elsewhere", (node) => node.addMount("7:3", "/somewhere"), /mounted at \/somewhere/],
  ["its device is bound elsewhere", (node) => {
    node.addMount("0:6", "/bound", { filesystem: "devtmpfs", root: "/loop3" });
    node.paths.nodes.set("/bound", { kind: "block", deviceNumber: "7:3" });
  }, /bound at/],
  ["a bind of its name cannot be looked at", (node) => {
    node.addMount("0:6", "/bound", { filesystem: "devtmpfs", root: "/loop3" });
  }, /bound at/],
];

/** What keeps a device, and is not seen before the volume's own mount is gone. */
const keepers: readonly [string, (node: FakeNode) => void, RegExp][] = [
  [
    "another mount namespace",
    (node) => node.namespaces = [{ at: "/data", pid: 7, name: "containerd" }],
    /\/dev\/loop3 is mounted at \/data in the mount namespace of process 7 \(containerd\): .*restart the service/,
  ],
  [
    "a process that opened it exclusively meanwhile",
    (node) =>
      node.after = (operation) => {
        if (operation !== "unmount") return;
        node.claimed = true;
        node.holder = { certain: true, description: "process 7 (mkfs.ext4)" };
      },
    /is open: process 7 \(mkfs.ext4\): .*end that process/,
  ],
];

for (const [name, use, text] of keepers) {
  Deno.test(`unstage() names ${name} that keeps the device, searches for it once, and ends afterwards`, async () => {
    const node = await staged(ext4);
    use(node);
    await assert.rejects(node.unstage(), refusal("in-use", text));
    assert.deepEqual([node.device.connected, node.hiddenSearches], [true, 1]);
    Object.assign(node, { namespaces: [], claimed: false, holder: undefined, after: () => {} });
    await node.unstage();
    assertGone(node);
    assert.equal(node.hiddenSearches, 1, "only where it is refused");
  });
}

for (const [name, use, text] of users) {
  Deno.test(`unstage() refuses while ${name}, and changes nothing`, async () => {
    for (const capability of [ext4, block]) {
      const node = await staged(capability);
      use(node);
      const before = node.operations.length;
      await assert.rejects(node.unstage(), refusal("in-use", text));
      assert.equal(node.operations.length, before);
      assert.equal(node.stagingState?.staged, true);
    }
  });
}

Deno.test("unstage() refuses while a pod has a mount of a device that is not connected any more, and changes nothing", async () => {
  const node = await staged(ext4);
  node.device.connected = false;
  node.addMount("7:3", "/kubelet/pods/2/mount");
  const before = node.operations.length;
  await assert.rejects(node.unstage(), refusal("in-use", /is mounted at \/kubelet\/pods\/2\/mount/));
  assert.deepEqual([node.operations.length, node.stagingState?.staged], [before, true]);
});

Deno.test("unstage() ignores a bind of an earlier device of the same name", async () => {
  const node = await staged(block);
  node.addMount("0:6", "/bound", { filesystem: "devtmpfs", root: "/loop3//deleted" });
  node.paths.nodes.set("/bound", { kind: "block", deviceNumber: "259:1" });
  await node.unstage();
  assert.equal(node.device.connected, false);
});

Deno.test("unstage() lets no publish use what is left once it has begun: that stages anew", async () => {
  const node = await staged(ext4);
  node.before = (operation) => {
    if (operation === "disconnect") throw injected;
  };
  await assert.rejects(node.unstage());
  node.before = () => {};
  await node.publish();
  assert.equal(node.operations.filter((operation) => operation === "mountDevice").length, 2);
});

Deno.test("unstage() unmounts before it disconnects", async () => {
  const node = await staged(ext4);
  await node.unstage();
  assert.ok(node.operations.indexOf("unmount") < node.operations.indexOf("disconnect"));
});

Deno.test("unstage() removes a device file that was being written when the stage was killed", async () => {
  const node = await staged(block);
  node.setStagingState({ staged: false });
  node.paths.nodes.delete(deviceFile);
  node.paths.nodes.set(`${deviceFile}.new`, { kind: "file", text: "/dev/lo" });
  await node.unstage();
  assertGone(node);
  assert.deepEqual(await node.paths.list(stagingPath), []);
});

Deno.test("unstage() leaves a file named device alone that holds anything but a device's path", async () => {
  const node = await staged(block);
  node.paths.nodes.set(deviceFile, { kind: "file", text: "somebody's" });
  await node.unstage();
  assert.equal(node.paths.nodes.get(deviceFile)?.text, "somebody's");
});

Deno.test("unstage() takes down every epoch of the volume, and no other volume", async () => {
  const node = await staged(ext4);
  const other = nqn.replace("pvc-1:", "pvc-11:");
  const older = nqn.replace(":1-", ":0-");
  node.devices.set(other, node.newDevice({ path: "/dev/loop5", deviceNumber: "7:5", connected: true }));
  node.devices.set(older, node.newDevice({ path: "/dev/loop6", deviceNumber: "7:6", connected: true }));
  await node.unstage();
  assert.equal(node.devices.get(older)?.connected, false);
  assert.equal(node.devices.get(other)?.connected, true);
});

Deno.test("unstage() refuses while another disk is mounted at the staging path, over the volume or alone", async () => {
  for (const alone of [false, true]) {
    const node = await staged(ext4);
    if (alone) node.table = [];
    node.addMount("8:1", stagingPath);
    const before = structuredClone(node.table);
    await assert.rejects(node.unstage(), refusal("precondition", /something else.*device=8:1/));
    assert.deepEqual(node.table, before);
  }
});

Deno.test("unstage() unmounts a mount of the volume's earlier device", async () => {
  const node = await staged(ext4);
  node.setStagingState({ mountedAs: "7:8" });
  node.table = [];
  node.addMount("7:8", stagingPath);
  await node.unstage();
  assertGone(node);
});

for (const kind of ["link", "directory", "block"] as const) {
  Deno.test(`unstage() of a block volume leaves a ${kind} named device alone, and does not read it`, async () => {
    const node = await staged(block);
    node.paths.nodes.set(deviceFile, { kind, text: "/dev/sda", to: "/dev/zero" });
    await node.unstage();
    assert.equal(node.paths.nodes.get(deviceFile)?.kind, kind);
    assert.equal(node.device.connected, false);
  });
}

Deno.test("unpublish() and unstage() unmount what a lost record has left, also after a stage that was killed before it found a device", async () => {
  const node = new FakeNode();
  await node.stage();
  await node.publish();
  node.paths.nodes.delete("/state/volumes/pvc-1.json");
  // The router was restarted: what is mounted is dead, and the device is another one.
  Object.assign(node.device, { connected: false, path: "/dev/loop4", deviceNumber: "7:4" });
  let isKilled = false;
  node.before = (operation) => {
    isKilled ||= operation === "setReadOnly";
    if (isKilled) throw injected;
  };
  await assert.rejects(node.stage());
  node.before = () => {};
  assert.equal(node.stagingState?.device, undefined);
  await node.unpublish();
  await node.unstage();
  assert.deepEqual([node.table, node.stagingState], [[], undefined]);
});
