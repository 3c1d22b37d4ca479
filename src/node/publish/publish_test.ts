import assert from "node:assert/strict";
import {
  block,
  call,
  ext4,
  FakeNode,
  publishContext,
  sizeBytes,
  stagingPath,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_world.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";

const injected = new VolumeError("internal", "injected");
const secondTarget = "/kubelet/pods/2/mount";

function is(kind: VolumeErrorKind, text = /./) {
  return (error: unknown) => VolumeError.is(error, kind) && text.test(error.message);
}

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
    const whole = await staged(capability);
    const first = whole.operations.length;
    await whole.publish({ capability });
    for (let failing = first + 1; failing <= whole.operations.length; failing++) {
      const node = await staged(capability);
      node.before = (_, count) => {
        if (count === failing) throw injected;
      };
      await assert.rejects(node.publish({ capability }), (error) => error === injected);
      assert.deepEqual(at(node, targetPath), []);
      assert.equal(node.paths.nodes.has(targetPath), false, whole.operations[failing - 1]);
      assert.deepEqual(node.stash?.published, []);
      node.before = () => {};
      await node.publish({ capability });
      assert.equal(at(node, targetPath).length, 1);
    }
  });

  Deno.test(`publish() of a ${kind} volume whose bind fails after it was made takes it away`, async () => {
    const node = await staged(capability);
    node.after = (operation) => {
      if (operation === "bind") throw injected;
    };
    await assert.rejects(node.publish({ capability }), (error) => error === injected);
    assert.deepEqual(at(node, targetPath), []);
    assert.equal(node.paths.nodes.has(targetPath), false);
  });

  Deno.test(`publish() of a ${kind} volume goes through after a crash at any step of it`, async () => {
    for (const readOnly of [false, true]) {
      const whole = await staged(capability);
      const first = whole.operations.length;
      await whole.publish({ capability, readOnly });
      for (let crashing = first + 1; crashing <= whole.operations.length; crashing++) {
        const node = await staged(capability);
        node.before = (_, count) => {
          if (count >= crashing) throw injected;
        };
        await assert.rejects(node.publish({ capability, readOnly }));
        node.before = () => {};
        await node.publish({ capability, readOnly });
        assert.equal(at(node, targetPath).length, 1);
        assert.equal(node.stash?.published.length, 1);
        await node.unpublish();
        await node.unstage();
        assert.deepEqual([node.table, node.stash], [[], undefined]);
      }
    }
  });

  Deno.test(`publish() of a ${kind} volume again is one mount and one entry`, async () => {
    const node = await published(capability);
    await node.publish({ capability });
    assert.equal(at(node, targetPath).length, 1);
    assert.deepEqual(node.stash?.published, [{ targetPath, readOnly: false }]);
  });

  Deno.test(`publish() of a ${kind} volume throws exists-incompatible when it is there with another readonly`, async () => {
    const node = await published(capability);
    await assert.rejects(node.publish({ capability, readOnly: true }), is("exists-incompatible"));
    await node.unpublish();
    await node.publish({ capability, readOnly: true });
    await assert.rejects(node.publish({ capability }), is("exists-incompatible"));
  });

  Deno.test(`publish() of a ${kind} volume throws precondition when the target is of the other kind`, async () => {
    const node = await staged(capability);
    const wrong = kind === "block" ? { kind: "directory" as const } : { kind: "file" as const, text: "" };
    node.paths.nodes.set(targetPath, wrong);
    await assert.rejects(node.publish({ capability }), is("precondition", /not a (?:file|directory)/));
    assert.deepEqual(node.paths.nodes.get(targetPath), wrong);
  });

  Deno.test(`unpublish() of a ${kind} volume goes through after a failure at any step`, async () => {
    const whole = await published(capability);
    const first = whole.operations.length;
    await whole.unpublish();
    for (let failing = first + 1; failing <= whole.operations.length; failing++) {
      const node = await published(capability);
      node.before = (_, count) => {
        if (count === failing) throw injected;
      };
      await assert.rejects(node.unpublish(), (error) => error === injected);
      node.before = () => {};
      await node.unpublish();
      assert.deepEqual(at(node, targetPath), []);
      assert.equal(node.paths.nodes.has(targetPath), false);
    }
  });
}

const unready: readonly [string, (node: FakeNode) => void, VolumeErrorKind, RegExp][] = [
  [
    "it was never staged",
    (node) => node.paths.nodes.delete(`/state/volumes/${volumeId}.json`),
    "precondition",
    /not staged/,
  ],
  ["staging did not end", (node) => node.setStash({ staged: false }), "precondition", /not staged/],
  ["its device is gone", (node) => void (node.device.connected = false), "precondition", /gone/],
  [
    "its device is another one",
    (node) => void (node.device.deviceNumber = "7:9"),
    "precondition",
    /another one/,
  ],
  ["its device shrank", (node) => void (node.device.sizeBytes = 512n), "identity-mismatch", /size/],
  ["its staging path is not mounted", (node) => void (node.table = []), "precondition", /not mounted/],
];

for (const [name, break_, kind, text] of unready) {
  Deno.test(`publish() throws ${kind} when ${name}, and makes nothing`, async () => {
    const node = await staged();
    break_(node);
    await assert.rejects(node.publish(), is(kind, text));
    assert.equal(node.paths.nodes.has(targetPath), false);
  });
}

for (const option of ["ro", "emergency_ro", "shutdown"]) {
  Deno.test(`publish() throws precondition when the file system shows ${option}`, async () => {
    const node = await staged();
    node.table = node.table.map((entry) => ({ ...entry, superOptions: [option] }));
    await assert.rejects(node.publish(), is("precondition", /turned read-only/));
  });
}

for (const kind of ["unavailable", "deadline"] as const) {
  Deno.test(`publish() throws precondition when the staged file system's root is ${kind}, and a stage mounts anew`, async () => {
    const node = await staged();
    const { before } = node.paths;
    node.paths.before = (operation, path) => {
      if (operation === "info" && path === stagingPath) throw new VolumeError(kind, "Input/output error");
      before(operation, path);
    };
    await assert.rejects(node.publish(), is("precondition", /does not answer/));
    assert.equal(node.paths.nodes.has(targetPath), false);
    const mounts = () => node.operations.filter((operation) => operation === "mountDevice").length;
    const earlier = mounts();
    await node.stage();
    assert.equal(mounts(), earlier + 1);
  });
}

const wrongRequests: readonly [string, Parameters<FakeNode["publish"]>[0], RegExp][] = [
  ["another staging path", { stagingPath: "/kubelet/elsewhere" }, /another path/],
  ["another epoch", { publishContext: publishContext({ epoch: "2-ffffffff" }) }, /another epoch/],
  ["a block capability", { capability: block }, /staged as ext4/],
  ["another file system", { capability: { ...ext4, filesystem: "xfs" } as Capability }, /staged as ext4/],
];

for (const [name, change, text] of wrongRequests) {
  Deno.test(`publish() throws precondition for ${name} than the staged one`, async () => {
    const node = await staged();
    await assert.rejects(node.publish(change), is("precondition", text));
  });
}

Deno.test("publish() throws exists-incompatible for another capability at the same target", async () => {
  const node = await published();
  await assert.rejects(node.publish({ capability: block }), is("exists-incompatible"));
});

const foreign: readonly [string, string, string][] = [
  ["a tmpfs", "0:30", "tmpfs"],
  ["another device", "8:1", "ext4"],
];

for (const [name, deviceNumber, filesystem] of foreign) {
  Deno.test(`publish() leaves ${name} at the target alone`, async () => {
    const node = await staged();
    node.addMount(deviceNumber, targetPath, { filesystem });
    await assert.rejects(node.publish(), is("exists-incompatible", /something else/));
    assert.equal(at(node, targetPath).length, 1);
  });
}

Deno.test("publish() of a block volume leaves another device at the target alone", async () => {
  const node = await staged(block);
  node.addMount("0:6", targetPath, { filesystem: "devtmpfs", root: "/loop3" });
  node.paths.nodes.set(targetPath, { kind: "block", deviceNumber: "7:4" });
  await assert.rejects(node.publish({ capability: block }), is("exists-incompatible"));
});

const modes: readonly [Capability["mode"], boolean][] = [
  ["single-node-writer", true],
  ["single-node-multi-writer", true],
  ["multi-node-multi-writer", true],
  ["single-node-single-writer", false],
];

for (const [mode, allowed] of modes) {
  Deno.test(`publish() at a second target is ${allowed ? "allowed" : "refused"} for ${mode}`, async () => {
    const capability: Capability = { access: "block", mode };
    const node = await published(capability);
    const second = node.publish({ capability, targetPath: secondTarget });
    if (!allowed) return await assert.rejects(second, is("precondition", /SINGLE_NODE_SINGLE_WRITER/));
    await second;
    assert.equal(node.stash?.published.length, 2);
  });
}

Deno.test("publish() for a single writer does not count a target that is not mounted any more", async () => {
  const capability: Capability = { ...ext4, mode: "single-node-single-writer" };
  const node = await published(capability);
  node.table = node.table.filter((entry) => entry.mountPoint !== targetPath);
  await node.publish({ capability, targetPath: secondTarget });
  assert.deepEqual(node.stash?.published.map((target) => target.targetPath), [secondTarget]);
});

Deno.test("publish() of a read-only volume is read-only whatever is asked", async () => {
  const node = await staged(ext4, { readonly: "true" });
  await node.publish();
  assert.deepEqual(at(node, targetPath)[0]?.mountOptions, ["ro"]);
});

Deno.test("publish() of a block volume makes the device read-only while all its uses are, and no longer", async () => {
  const node = await staged(block);
  await node.publish({ capability: block, readOnly: true });
  assert.equal(node.device.readOnly, true);
  const writable = { capability: block, targetPath: secondTarget };
  await assert.rejects(node.publish(writable), is("precondition", /read-only for all/));
  await node.publish({ ...writable, readOnly: true });
  await node.unpublish();
  await node.unpublish(secondTarget);
  await node.publish(writable);
  assert.equal(node.device.readOnly, false);
  await assert.rejects(
    node.publish({ capability: block, readOnly: true }),
    is("precondition", /read-only for all/),
  );
});

Deno.test("unpublish() takes the target off the record, and no other", async () => {
  const node = await published();
  await node.publish({ targetPath: secondTarget });
  await node.unpublish();
  assert.deepEqual(node.stash?.published.map((target) => target.targetPath), [secondTarget]);
});

Deno.test("unpublish() succeeds when neither mount nor target nor state is there", async () => {
  const node = new FakeNode();
  await node.unpublish();
  assert.deepEqual(node.operations, ["unmount"]);
});

Deno.test("unpublish() throws precondition for a target that is a link", async () => {
  const node = await staged();
  node.paths.nodes.set(targetPath, { kind: "link", to: "/etc" });
  await assert.rejects(node.unpublish(), is("precondition", /neither/));
});

Deno.test("unpublish() goes through with a damaged state file", async () => {
  const node = await published();
  node.paths.nodes.set(`/state/volumes/${volumeId}.json`, { kind: "file", text: "{" });
  await node.unpublish();
  assert.deepEqual(at(node, targetPath), []);
});

Deno.test("stats() of a file system counts bytes and inodes where it is staged or published", async () => {
  const node = await published();
  for (const path of [stagingPath, targetPath]) {
    const answer = await node.service.stats(volumeId, path, call());
    assert.equal(answer.kind === "filesystem" && answer.stats.totalInodes, 10n);
  }
});

Deno.test("stats() of a block volume gives the device's size where it is staged or published", async () => {
  const node = await published(block);
  for (const path of [stagingPath, targetPath]) {
    assert.deepEqual(await node.service.stats(volumeId, path, call()), {
      kind: "block",
      totalBytes: sizeBytes,
    });
  }
  node.device.connected = false;
  await assert.rejects(node.service.stats(volumeId, targetPath, call()), is("unavailable"));
});

Deno.test("expand() scans, waits for the device and grows the file system at its staging path", async () => {
  const node = await published();
  const { rescan } = node.world.connector;
  node.world.connector.rescan = async (nqn, context) => {
    await rescan(nqn, context);
    node.clock.timer(3000, () => node.device.sizeBytes = sizeBytes * 2n);
  };
  const request = {
    volumeId,
    volumePath: targetPath,
    range: { requiredBytes: sizeBytes * 2n, limitBytes: 0n },
  };
  const expanding = node.service.expand(request, call());
  await node.clock.advance(10_000);
  assert.equal(await expanding, sizeBytes * 2n);
  assert.equal(node.operations.at(-1), "grow");
  assert.equal(node.stash?.sizeBytes, sizeBytes * 2n);
});

Deno.test("expand() of a block volume grows nothing on it", async () => {
  const node = await published(block);
  const grows = node.operations.filter((operation) => operation === "grow").length;
  const range = { requiredBytes: 0n, limitBytes: 0n };
  await node.service.expand({ volumeId, volumePath: targetPath, range }, call());
  assert.equal(node.operations.filter((operation) => operation === "grow").length, grows);
});

Deno.test("expand() throws unavailable when the device does not grow", async () => {
  const node = await published();
  const range = { requiredBytes: sizeBytes * 2n, limitBytes: 0n };
  const rejected = assert.rejects(
    node.service.expand({ volumeId, volumePath: targetPath, range }, call()),
    is("unavailable", /its size stays/),
  );
  await node.clock.advance(120_000);
  await rejected;
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
    await assert.rejects(node.service.expand(request, call()), is(kind));
  });
}

Deno.test("expand() throws precondition for a file system that is staged read-only", async () => {
  const node = await staged(ext4, { readonly: "true" });
  const request = { volumeId, volumePath: stagingPath, range: { requiredBytes: 0n, limitBytes: 0n } };
  await assert.rejects(node.service.expand(request, call()), is("precondition", /read-only/));
});
