import assert from "node:assert/strict";
import { contextOf, FakeNfsNode, sharesPath, targetOf } from "../../../tests/fakes/nfs.ts";
import { refusal, unsettled } from "../../../tests/fakes/refusal.ts";
import { mountKey } from "./shared_mounts.ts";

function nodeWith(...names: string[]): FakeNfsNode {
  const node = new FakeNfsNode();
  for (const name of names) node.addDirectory(`/pool/volumes/${name}`);
  return node;
}

Deno.test("publish() mounts the share once and binds each directory from it", async () => {
  const node = nodeWith("a", "b");
  await node.publish("a");
  await node.publish("b");
  assert.deepEqual(node.shares, ["10.0.0.1:/pool"]);
  assert.equal(node.at(targetOf("a"))?.source, "10.0.0.1:/pool/volumes/a");
  assert.equal(node.at(targetOf("b"))?.source, "10.0.0.1:/pool/volumes/b");
});

Deno.test("publish() finds the path from the server's root, however deep the export is", async () => {
  for (const exported of ["/", "/pool", "/pool/volumes", "/pool/volumes/a"]) {
    const node = nodeWith("a");
    await node.publish("a", { volumeContext: contextOf("a", { export: exported }) });
    assert.deepEqual(node.shares, [`10.0.0.1:${exported}`]);
    assert.equal(node.at(targetOf("a"))?.source, "10.0.0.1:/pool/volumes/a", exported);
  }
});

Deno.test("publish() mounts the root of the server for a volume without an export", async () => {
  const node = nodeWith("a");
  const { export: _, ...volumeContext } = contextOf("a");
  await node.publish("a", { volumeContext });
  assert.deepEqual(node.shares, ["10.0.0.1:/"]);
});

Deno.test("publish() twice does nothing the second time", async () => {
  const node = nodeWith("a");
  await node.publish("a");
  const before = node.operations.length;
  await node.publish("a");
  assert.deepEqual(node.operations.slice(before), ["real path"]);
});

Deno.test("publish() makes another mount for other options, another export or another server", async () => {
  const node = nodeWith("a", "b", "c", "d");
  await node.publish("a");
  await node.publish("b", { mountFlags: ["timeo=50"] });
  await node.publish("c", { volumeContext: contextOf("c", { export: "/pool/volumes" }) });
  await node.publish("d", { volumeContext: contextOf("d", { addresses: "10.0.0.2" }) });
  assert.equal(node.shares.length, 4);
});

Deno.test("mountKey() is the same in any order of addresses and options, and for the default port", () => {
  const share = {
    addresses: [{ host: "a", port: 2049 }, { host: "b", port: 2050 }],
    export: "/pool",
    options: ["hard", "timeo=1"],
  };
  const key = mountKey(share);
  assert.match(key, /^[0-9a-f]{16}$/);
  assert.equal(key, mountKey({ ...share, addresses: share.addresses.toReversed() }));
  assert.equal(key, mountKey({ ...share, options: share.options.toReversed() }));
  assert.notEqual(key, mountKey({ ...share, export: "/" }));
  assert.notEqual(key, mountKey({ ...share, options: ["hard"] }));
  assert.notEqual(key, mountKey({ ...share, addresses: share.addresses.slice(1) }));
});

Deno.test("publish() takes the first address that mounts, and leaves nothing when none does", async () => {
  const node = nodeWith("a");
  node.down.add("10.0.0.1");
  const volumeContext = contextOf("a", { addresses: "10.0.0.1,10.0.0.2" });
  await node.publish("a", { volumeContext });
  assert.deepEqual(node.shares, ["10.0.0.2:/pool"]);
  await node.unpublish("a");
  node.down.add("10.0.0.2");
  await assert.rejects(node.publish("a", { volumeContext }), refusal("unavailable"));
  assert.deepEqual(node.table, []);
  assert.deepEqual([...node.paths.nodes.keys()].filter((path) => path.startsWith(`${sharesPath}/`)), []);
});

Deno.test("publish() refuses a link in the share, and leaves nothing mounted", async () => {
  for (const to of ["node:/etc", "/pool/volumes/b"]) {
    const node = nodeWith("a", "b");
    node.links.set("/pool/volumes/a", to);
    await assert.rejects(node.publish("a"), refusal("precondition", /symbolic link/));
    assert.deepEqual(node.table, []);
  }
});

Deno.test("publish() refuses and unmounts a link that is planted between the check and the bind", async () => {
  for (const to of ["node:/etc", "/pool/volumes/b"]) {
    const node = nodeWith("a", "b");
    node.before = (operation) => {
      if (operation === "bind") node.links.set("/pool/volumes/a", to);
    };
    await assert.rejects(node.publish("a"), refusal("identity-mismatch", /leads elsewhere now/));
    assert.deepEqual(node.table, []);
  }
});

Deno.test("publish() says that the server has no such directory, and unmounts the share", async () => {
  const node = nodeWith();
  await assert.rejects(node.publish("a"), refusal("not-found", /no such directory: path=\/pool\/volumes\/a/));
  assert.deepEqual(node.table, []);
});

for (
  const [what, change] of Object.entries<Record<string, string>>({
    "no addresses": { addresses: "" },
    "no path": { path: "" },
    "a path outside the export": { path: "/other/a" },
    "a path with ..": { path: "/pool/volumes/../../etc" },
    "a path with a line break": { path: "/pool/volumes/a\nb" },
    "a neighbour of the export": { path: "/pool2/a" },
    "an address with an option": { addresses: "10.0.0.1,soft=1 -o x" },
  })
) {
  Deno.test(`publish() refuses ${what} before it mounts anything`, async () => {
    const node = nodeWith("a");
    const publishing = node.publish("a", { volumeContext: contextOf("a", change) });
    await assert.rejects(publishing, refusal("invalid"));
    assert.deepEqual(node.operations, []);
  });
}

Deno.test("publish() refuses a target at which another directory or file system is mounted", async () => {
  const node = nodeWith("a", "b");
  await node.publish("b");
  await assert.rejects(node.publish("a", { targetPath: targetOf("b") }), unsettled("exists-incompatible"));
  node.addMount(targetOf("a"), { filesystem: "ext4", deviceNumber: "8:1" });
  await assert.rejects(node.publish("a"), unsettled("exists-incompatible"));
  assert.equal(node.at(targetOf("a"))?.filesystem, "ext4", "what was there stays");
});

Deno.test("publish() refuses a target that has the volume with other options", async () => {
  const node = nodeWith("a");
  await node.publish("a");
  await assert.rejects(node.publish("a", { mountFlags: ["timeo=50"] }), unsettled("exists-incompatible"));
  assert.deepEqual(node.shares, ["10.0.0.1:/pool"], "the other mount is gone again");
});

Deno.test("publish() killed before any step converges: the next one succeeds, and unpublishing leaves nothing", async () => {
  const whole = nodeWith("a");
  await whole.publish("a");
  for (let at = 1; at <= whole.operations.length; at++) {
    const node = nodeWith("a");
    node.before = (_, count) => {
      if (count >= at) throw new Error("killed");
    };
    // What is killed in the end is only its tidying up.
    await node.publish("a").catch(() => {});
    node.before = () => {};
    node.restart();
    await node.service.removeHelpers();
    await node.publish("a");
    assert.equal(node.shares.length, 1, `killed before ${whole.operations[at - 1]}`);
    await node.unpublish("a");
    assert.deepEqual(node.table, [], `killed before ${whole.operations[at - 1]}`);
  }
});

Deno.test("a start unmounts the shares that a killed publish has left, and no others", async () => {
  const node = nodeWith("a", "b");
  await node.publish("a");
  node.before = (operation) => {
    // The process is killed: it undoes nothing.
    if (operation !== "mount" && !operation.startsWith("makeFolder")) throw new Error("killed");
  };
  const volumeContext = contextOf("b", { addresses: "10.0.0.2" });
  await assert.rejects(node.publish("b", { volumeContext }));
  assert.equal(node.shares.length, 2);
  node.before = () => {};
  node.restart();
  await node.service.releaseUnused(new AbortController().signal);
  assert.deepEqual(node.shares, ["10.0.0.1:/pool"]);
});
