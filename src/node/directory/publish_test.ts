import assert from "node:assert/strict";
import { contextOf, FakeNfsNode, sharesPath, targetOf } from "../../../tests/fakes/nfs.ts";
import { refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import { publishDirectory } from "./publish.ts";
import { SharedMounts } from "./shared_mounts.ts";

function scene(): FakeNfsNode {
  const node = new FakeNfsNode();
  node.addDirectory("/pool/volumes/a");
  return node;
}

/** Binds that are only needed on the way to another. */
function helpersOf(node: FakeNfsNode): readonly string[] {
  const names = [...node.paths.nodes.keys(), ...node.table.map(({ mountPoint }) => mountPoint)];
  return names.filter((path) => path.startsWith(`${sharesPath}/bind-`));
}

const other = "/kubelet/pods/other/mount";

Deno.test("publish() binds the directory to the target, twice as well as once", async () => {
  const node = scene();
  await node.publish("a");
  await node.publish("a");
  const { source, mountOptions } = node.at(targetOf("a"))!;
  assert.equal(source, "10.0.0.1:/pool/volumes/a");
  assert.ok(mountOptions.includes("rw"));
  assert.equal(node.table.filter(({ mountPoint }) => mountPoint === targetOf("a")).length, 1);
});

for (
  const [what, change] of Object.entries({
    "readonly": { readOnly: true },
    "a reader's mode": { mode: "multi-node-reader-only" as const },
    "the flag ro": { mountFlags: ["ro"] },
  })
) {
  Deno.test(`publish() makes the bind read-only for ${what}, and only that bind`, async () => {
    const node = scene();
    await node.publish("a", { targetPath: other });
    await node.publish("a", change);
    assert.ok(node.at(targetOf("a"))!.mountOptions.includes("ro"));
    assert.ok(node.at(other)!.mountOptions.includes("rw"));
  });
}

Deno.test("publish() throws when the kernel shows a writable bind although it took the command", async () => {
  const node = scene();
  const deps = node.deps();
  const lazy = { ...deps, nfs: { ...deps.nfs, makeReadOnly: () => Promise.resolve() } };
  const request = {
    volumeId: "a",
    targetPath: targetOf("a"),
    mode: "multi-node-multi-writer" as const,
    mountFlags: [],
    readOnly: true,
    volumeContext: contextOf("a"),
  };
  const publishing = publishDirectory(lazy, new SharedMounts(lazy), request, node.call());
  await assert.rejects(publishing, refusal("exists-incompatible", /readonly=false asked=true/));
  assert.equal(node.at(targetOf("a")), undefined);
});

Deno.test("publish() makes no target read-only afterwards: pods would see it writable", async () => {
  const node = scene();
  await node.publish("a", { readOnly: true });
  const order = node.operations.filter((each) => /^(?:bind|make read-only)/.test(each));
  assert.deepEqual(order, ["bind", "make read-only", "bind"]);
  assert.deepEqual(helpersOf(node), []);
});

Deno.test("publish() killed before any step converges to a read-only bind", async () => {
  const whole = scene();
  const begin = whole.operations.length;
  await whole.publish("a", { readOnly: true });
  for (let at = begin + 1; at <= whole.operations.length; at++) {
    const node = scene();
    node.before = (_, count) => {
      if (count >= at) throw new Error("killed");
    };
    await node.publish("a", { readOnly: true }).catch(() => {});
    node.before = () => {};
    node.restart();
    await node.publish("a", { readOnly: true });
    assert.ok(node.at(targetOf("a"))!.mountOptions.includes("ro"));
    await node.service.removeHelpers();
    assert.deepEqual(helpersOf(node), []);
  }
});

Deno.test("publish() refuses to make a read-only target writable", async () => {
  const node = scene();
  await node.publish("a", { readOnly: true });
  await assert.rejects(node.publish("a"), unsettled("exists-incompatible", /published there in another way/));
  assert.ok(node.at(targetOf("a"))!.mountOptions.includes("ro"));
});

Deno.test("publish() refuses a target where something else is, and leaves it", async () => {
  const node = scene();
  node.addMount(targetOf("a"), { filesystem: "ext4", deviceNumber: "8:1" });
  await assert.rejects(node.publish("a"), unsettled("exists-incompatible"));
  assert.equal(node.at(targetOf("a"))?.filesystem, "ext4");
});

Deno.test("publish() refuses a target in the driver's folder or over it", async () => {
  const node = scene();
  for (const targetPath of [sharesPath, `${sharesPath}/x`, "/state"]) {
    await assert.rejects(node.publish("a", { targetPath }), refusal("invalid", /overlaps/));
  }
});

Deno.test("publish() lets SINGLE_NODE_SINGLE_WRITER have one target, also after a restart", async () => {
  const node = scene();
  const mode = "single-node-single-writer";
  await node.publish("a", { mode });
  node.restart();
  await node.publish("a", { mode });
  await assert.rejects(
    node.publish("a", { targetPath: other, mode }),
    refusal("precondition", /allows one target/),
  );
  await node.publish("a", { targetPath: other });
});

Deno.test("publish() does not start a pod on a server that does not answer", async () => {
  const node = scene();
  node.paths.info = () => new Promise(() => {});
  const publishing = node.publish("a");
  publishing.catch(() => {});
  await node.clock.advance(10_000);
  await assert.rejects(publishing, refusal("unavailable", /server does not answer/));
});
