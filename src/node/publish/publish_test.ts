import { refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import assert from "node:assert/strict";
import {
  block,
  breakEachStep,
  call,
  ext4,
  FakeNode,
  injected,
  publishContext,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";

const secondTarget = "/kubelet/pods/2/mount";

async function staged(
  capability: Capability = ext4,
  context: Record<string, string> = {},
): Promise<FakeNode> {
  const node = new FakeNode();
  if (context.readonly === "true") node.device.content = "ext4";
  await node.stage({ capability }, context);
  return node;
}

async function published(capability: Capability = ext4): Promise<FakeNode> {
  const node = await staged(capability);
  await node.publish({ capability });
  return node;
}

function at(node: FakeNode, path: string) {
  return node.table.filter((entry) => entry.mountPoint === path);
}

for (const capability of [ext4, block]) {
  const kind = capability.access;

  Deno.test(`publish() of a ${kind} volume that fails at any step leaves nothing, and the retry succeeds`, async () => {
    const publish = (node: FakeNode) => node.publish({ capability });
    await breakEachStep(() => staged(capability), publish, async (node, step) => {
      assert.deepEqual(at(node, targetPath), []);
      assert.equal(node.paths.nodes.has(targetPath), false, step);
      assert.deepEqual(node.stagingState?.published, []);
      await node.publish({ capability });
      assert.equal(at(node, targetPath).length, 1);
    });
  });

  Deno.test(`publish() of a ${kind} volume whose bind fails after it was made removes the bind`, async () => {
    const node = await staged(capability);
    node.after = (operation) => {
      if (operation === "bind") throw injected;
    };
    await assert.rejects(node.publish({ capability }), (error) => error === injected);
    assert.deepEqual(at(node, targetPath), []);
    assert.equal(node.paths.nodes.has(targetPath), false);
  });

  Deno.test(`publish() of a ${kind} volume succeeds after a crash at any step of it`, async () => {
    for (const readOnly of [false, true]) {
      const publish = (node: FakeNode) => node.publish({ capability, readOnly });
      const check = async (node: FakeNode) => {
        await node.publish({ capability, readOnly });
        assert.equal(at(node, targetPath).length, 1);
        assert.equal(node.stagingState?.published.length, 1);
        await node.unpublish();
        await node.unstage();
        assert.deepEqual([node.table, node.stagingState], [[], undefined]);
      };
      await breakEachStep(() => staged(capability), publish, check, "crashes");
    }
  });

  Deno.test(`publish() of a ${kind} volume throws exists-incompatible when it is there with another readonly`, async () => {
    const node = await published(capability);
    await assert.rejects(node.publish({ capability, readOnly: true }), unsettled("exists-incompatible"));
    await node.unpublish();
    await node.publish({ capability, readOnly: true });
    await assert.rejects(node.publish({ capability }), unsettled("exists-incompatible"));
  });

  Deno.test(`unpublish() of a ${kind} volume succeeds after a failure at any step`, async () => {
    await breakEachStep(() => published(capability), (node) => node.unpublish(), async (node) => {
      await node.unpublish();
      assert.deepEqual(at(node, targetPath), []);
      assert.equal(node.paths.nodes.has(targetPath), false);
    });
  });
}

/** What may have become of a staged volume while a kubelet waits with its next pod, which it never stages the volume for. */
const dead: readonly [string, Capability, (node: FakeNode) => Promise<void> | void, RegExp][] = [
  ["staging was taken down", ext4, (node) => node.setStagingState({ staged: false }), /not staged/],
  ["device is another one", ext4, replaceDevice, /another one/],
  ["raw device is another one", block, replaceDevice, /another one/],
  ["device is gone", ext4, (node) => void (node.device.connected = false), /is gone/],
  ["epoch is over", ext4, (node) => node.setStagingState({ epoch: "1-ffffffff" }), /another epoch/],
  ...["ro", "emergency_ro", "shutdown"].map((option): (typeof dead)[number] => [
    `file system shows ${option}`,
    ext4,
    (node) => void (node.table = node.table.map((entry) => ({ ...entry, superOptions: [option] }))),
    /turned read-only/,
  ]),
];

/** A router that has rebooted gives it a new identity, and the kernel a new number. */
function replaceDevice(node: FakeNode): void {
  Object.assign(node.device, { uniqueId: "bb11", deviceNumber: "7:9" });
  node.paths.nodes.set("/dev/loop3", { kind: "block", deviceNumber: "7:9" });
}

for (const [what, capability, break_, text] of dead) {
  Deno.test(`publish() of a volume whose ${what} waits for the pod before, and then stages it anew`, async () => {
    const node = new FakeNode();
    node.device.uniqueId = "aa00";
    await node.stage({ capability });
    await node.publish({ capability });
    await break_(node);
    const next = { capability, targetPath: secondTarget };
    await assert.rejects(node.publish(next), refusal("precondition", text));
    assert.equal(node.paths.nodes.has(secondTarget), false);
    assert.equal(at(node, targetPath).length, 1);
    await node.unpublish();
    await node.publish(next);
    const staged = at(node, stagingPath).map(({ deviceNumber }) => deviceNumber);
    assert.deepEqual(staged, capability === ext4 ? [node.device.deviceNumber] : []);
    assert.deepEqual([at(node, secondTarget).length, node.stagingState?.staged], [1, true]);
    assert.deepEqual(node.formats.length, capability === ext4 ? 1 : 0);
  });
}

for (const capability of [ext4, block]) {
  Deno.test(`publish() stages a ${capability.access} volume anew on no device that the node has taken when it appeared`, async () => {
    const node = new FakeNode();
    node.device.uniqueId = "aa00";
    await node.stage({ capability });
    replaceDevice(node);
    node.layers = ["/dev/dm-3 (vg-data, LVM)"];
    for (let tries = 0; tries < 2; tries++) {
      await assert.rejects(
        node.publish({ capability }),
        refusal("unavailable", /this node itself uses .*vg-data/),
      );
    }
    node.layers = [];
    await node.publish({ capability });
    assert.deepEqual([at(node, targetPath).length, node.stagingState?.staged], [1, true]);
  });
}

for (const how of ["fails", "crashes"] as const) {
  Deno.test(`publish() of a volume whose stage is dead succeeds after a step of the next stage ${how}`, async () => {
    for (const [what, capability, break_] of dead) {
      const prepare = async () => {
        const node = new FakeNode();
        node.device.uniqueId = "aa00";
        await node.stage({ capability });
        await break_(node);
        return node;
      };
      await breakEachStep(prepare, (node) => node.publish({ capability }), async (node, step) => {
        await node.publish({ capability });
        const isMounted = at(node, stagingPath).map(({ superOptions }) => superOptions.join());
        assert.deepEqual(isMounted, capability === ext4 ? ["rw"] : [], `${what}: ${step}`);
        assert.deepEqual([at(node, targetPath).length, node.stagingState?.staged], [1, true]);
        assert.equal(node.stagingState?.device?.uniqueId, node.device.uniqueId);
        assert.equal(node.formats.length, capability === ext4 ? 1 : 0);
        await node.unpublish();
        await node.unstage();
        assert.deepEqual([node.table, node.stagingState], [[], undefined], `${what}: ${step}`);
      }, how);
    }
  });

  Deno.test(`publish() hands out no mount of a replay of which a step ${how}`, async () => {
    const request = {
      publishContext: publishContext({ readonly: "true", mayFormat: "false", mayReplay: "true" }),
    };
    const prepare = async () => {
      const node = new FakeNode();
      Object.assign(node.device, { content: "ext4", dirty: true });
      await node.stage(request);
      node.device.dirty = true;
      node.table = [];
      return node;
    };
    await breakEachStep(prepare, (node) => node.publish(request), async (node, step) => {
      await node.publish(request);
      const mounts = node.operations.filter((each) => ["replay", "mountDevice"].includes(each));
      assert.equal(mounts.at(-1), "mountDevice", step);
      assert.deepEqual([node.device.readOnly, node.stagingState?.replaying], [true, undefined], step);
    }, how);
  });
}

Deno.test("publish() of an encrypted volume whose device is another one needs its own secret to stage it anew", async () => {
  const node = new FakeNode();
  node.device.uniqueId = "aa00";
  const secrets = { encryptionPassphrase: "correct horse battery staple" };
  const encrypted = { volumeContext: { encrypted: "true" } };
  await node.stage({ ...encrypted, secrets }, { encrypted: "true" });
  replaceDevice(node);
  node.showDevices();
  const request = { ...encrypted, publishContext: publishContext({ encrypted: "true" }) };
  await assert.rejects(node.publish(request), refusal("precondition", /is gone.*no nodePublishSecretRef/));
  await node.publish({ ...request, secrets });
  assert.equal(at(node, targetPath).length, 1);
});

Deno.test("publish() of a volume that cannot be staged anew yet does so once it can", async () => {
  for (const change of [{}, { staged: false }]) {
    const node = await staged();
    node.setStagingState(change);
    Object.assign(node.device, { connected: false, exported: false });
    for (let i = 0; i < 2; i++) await assert.rejects(node.publish(), refusal("unavailable", /refused/));
    node.device.exported = true;
    await node.publish();
    assert.equal(at(node, targetPath).length, 1);
  }
});

Deno.test("publish() throws identity-mismatch when the device shrank, and makes nothing", async () => {
  const node = await staged();
  node.device.sizeBytes = 512n;
  await assert.rejects(node.publish(), unsettled("identity-mismatch", /size/));
  assert.equal(node.paths.nodes.has(targetPath), false);
});

Deno.test("publish() stages a volume anew whose file system's root never answers", async () => {
  const node = await staged();
  const { before } = node.paths;
  node.paths.before = (operation, path) => {
    const [mounted] = at(node, stagingPath);
    if (operation === "info" && path === stagingPath && mounted?.mountId === 100) {
      throw new VolumeError("deadline", "no answer");
    }
    before(operation, path);
  };
  await node.publish();
  assert.equal(node.operations.filter((operation) => operation === "mountDevice").length, 2);
});

const wrongRequests: readonly [string, Parameters<FakeNode["publish"]>[0], RegExp][] = [
  ["another staging path", { stagingPath: "/kubelet/elsewhere" }, /another path/],
  ["a block capability", { capability: block }, /staged as ext4/],
  ["another file system", { capability: { ...ext4, filesystem: "xfs" } as Capability }, /staged as ext4/],
];

for (const [name, change, text] of wrongRequests) {
  Deno.test(`publish() throws precondition for ${name} than the staged one`, async () => {
    const node = await staged();
    await assert.rejects(node.publish(change), refusal("precondition", text));
  });
}

Deno.test("publish() throws exists-incompatible for another capability at the same target", async () => {
  const node = await published();
  await assert.rejects(node.publish({ capability: block }), unsettled("exists-incompatible"));
});

Deno.test("publish() leaves another device at the target alone", async () => {
  const node = await staged();
  node.addMount("8:1", targetPath);
  await assert.rejects(node.publish(), unsettled("exists-incompatible", /something else/));
  assert.equal(at(node, targetPath).length, 1);
});

Deno.test("publish() of a block volume leaves another device at the target alone", async () => {
  const node = await staged(block);
  node.addMount("0:6", targetPath, { filesystem: "devtmpfs", root: "/loop3" });
  node.paths.nodes.set(targetPath, { kind: "block", deviceNumber: "7:4" });
  await assert.rejects(node.publish({ capability: block }), unsettled("exists-incompatible"));
});

for (const mode of ["single-node-writer", "single-node-multi-writer", "multi-node-multi-writer"] as const) {
  Deno.test(`publish() at a second target is allowed for ${mode}`, async () => {
    const capability: Capability = { access: "block", mode };
    const node = await published(capability);
    await node.publish({ capability, targetPath: secondTarget });
    assert.equal(node.stagingState?.published.length, 2);
  });
}

Deno.test("publish() for a single writer does not count a target that is no longer mounted", async () => {
  const capability: Capability = { ...ext4, mode: "single-node-single-writer" };
  const node = await published(capability);
  node.table = node.table.filter((entry) => entry.mountPoint !== targetPath);
  await node.publish({ capability, targetPath: secondTarget });
  assert.deepEqual(node.stagingState?.published.map((target) => target.targetPath), [secondTarget]);
});

Deno.test("publish() of a block volume keeps the device read-only as long as all its uses are", async () => {
  const node = await staged(block);
  await node.publish({ capability: block, readOnly: true });
  assert.equal(node.device.readOnly, true);
  const writable = { capability: block, targetPath: secondTarget };
  await assert.rejects(node.publish(writable), refusal("precondition", /read-only for all/));
  await node.publish({ ...writable, readOnly: true });
  await node.unpublish();
  await node.unpublish(secondTarget);
  await node.publish(writable);
  assert.equal(node.device.readOnly, false);
  await assert.rejects(
    node.publish({ capability: block, readOnly: true }),
    refusal("precondition", /read-only for all/),
  );
});

for (
  const [what, break_, staged] of [
    ["whose device is gone", replaceDevice, 0],
    ["that lives", () => {}, 1],
    ["over which something else is mounted", (node) => {
      replaceDevice(node);
      node.addMount("8:1", stagingPath);
    }, 2],
    ["of whose number another volume is mounted by now", (node) => {
      replaceDevice(node);
      node.addMount("7:3", "/kubelet/staging/pvc-2");
    }, 1],
  ] satisfies [string, (node: FakeNode) => void, number][]
) {
  Deno.test(`unpublish() from the last pod leaves ${staged} mounts of a staged file system ${what}`, async () => {
    const node = new FakeNode();
    node.device.uniqueId = "aa00";
    await node.stage();
    await node.publish();
    await node.publish({ targetPath: secondTarget });
    const before = at(node, stagingPath).length;
    break_(node);
    await node.unpublish();
    assert.ok(at(node, stagingPath).length >= before, "another pod has it");
    await node.unpublish(secondTarget);
    assert.equal(at(node, stagingPath).length, staged);
  });
}

Deno.test("unpublish() is done although a dead file system cannot be looked at or unmounted where it is staged", async () => {
  const busy = new VolumeError("in-use", "Cannot do it: busy");
  for (const part of ["find", "unmount"] as const) {
    const node = await published();
    node.device.connected = false;
    const { connector, mounts } = node.deps;
    const { unmount } = mounts;
    if (part === "find") connector.find = () => Promise.reject(busy);
    else {
      mounts.unmount = (target, context) =>
        target === stagingPath ? Promise.reject(busy) : unmount(target, context);
    }
    await node.unpublish();
    assert.deepEqual([at(node, targetPath), at(node, stagingPath).length], [[], 1]);
    assert.equal(node.reported.at(-1), "cannot unmount a file system whose device is gone");
  }
});

Deno.test("unpublish() removes only its target from the record", async () => {
  const node = await published();
  await node.publish({ targetPath: secondTarget });
  await node.unpublish();
  assert.deepEqual(node.stagingState?.published.map((target) => target.targetPath), [secondTarget]);
});

Deno.test("expand() scans, waits for the device and grows the file system at its staging path", async () => {
  const node = await published();
  const { rescan } = node.deps.connector;
  node.deps.connector.rescan = async (nqn, context) => {
    await rescan(nqn, context);
    node.clock.timer(3000, () => node.device.sizeBytes = sizeBytes * 2n);
  };
  const request = {
    volumeId,
    volumePath: targetPath,
    range: { requiredBytes: sizeBytes * 2n, limitBytes: sizeBytes * 2n },
  };
  const expanding = node.service.expand(request, call());
  await node.clock.advance(10_000);
  assert.equal(await expanding, sizeBytes * 2n);
  assert.equal(node.operations.at(-1), "grow");
  assert.equal(node.stagingState?.namespaceBytes, sizeBytes * 2n);
});

Deno.test("expand() throws precondition, and changes nothing, when the device does not grow soon", async () => {
  const node = await published();
  const range = { requiredBytes: sizeBytes * 2n, limitBytes: 0n };
  const rejected = assert.rejects(
    node.service.expand({ volumeId, volumePath: targetPath, range }, call()),
    refusal("precondition", /its device keeps its size: .* end the pods that use it/),
  );
  await node.clock.advance(10_000);
  await rejected;
  assert.equal(node.stagingState?.namespaceBytes, sizeBytes);
  assert.ok(!node.operations.includes("grow"));
});

const ranges: readonly [bigint, bigint, VolumeErrorKind][] = [
  [-1n, 0n, "invalid"],
  [5n, 4n, "out-of-range"],
  [0n, sizeBytes - 1n, "out-of-range"],
];

for (const [requiredBytes, limitBytes, kind] of ranges) {
  Deno.test(`expand() throws ${kind} for required=${requiredBytes} limit=${limitBytes}`, async () => {
    const node = await published();
    const request = { volumeId, volumePath: targetPath, range: { requiredBytes, limitBytes } };
    await assert.rejects(node.service.expand(request, call()), refusal(kind));
  });
}

Deno.test("expand() throws precondition for a file system that is staged read-only", async () => {
  const node = await staged(ext4, { readonly: "true" });
  const request = { volumeId, volumePath: stagingPath, range: { requiredBytes: 0n, limitBytes: 0n } };
  await assert.rejects(node.service.expand(request, call()), refusal("precondition", /read-only/));
});
