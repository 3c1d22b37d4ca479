import assert from "node:assert/strict";
import { FakeNode, targetPath } from "../fakes/node_deps.ts";
import { NodeService } from "../../src/node/node_service.ts";
import { type Change, outOfScope, type Scope, watchedNode } from "./_scope.ts";

const scope: Scope = {
  volumeId: "pvc-1",
  paths: ["/pods/1/mount"],
  statePath: "/state",
  devices: ["/dev/loop3"],
  others: ["/pods/2/mount", "/state/volumes/pvc-2.json"],
};

const mine = [
  "/pods/1/mount",
  "/pods/1/mount/file",
  "/state/volumes/pvc-1.json",
  "/dev/loop3",
  "nqn.2000-02.com.mikrotik:pvc-1:1-0a0b0c0d",
];
const foreign = [
  "/pods/1",
  "/pods/1/mounted",
  "/pods/1/mount/../../2",
  "/pods/2/mount",
  "/state/volumes/pvc-2.json",
  "/etc/passwd",
  "/",
  "",
  "/dev/loop4",
  "nqn.2000-02.com.mikrotik:pvc-10:1-0a0b0c0d",
  "nqn.2000-02.com.mikrotik:pvc-2:pvc-1",
];

for (const [list, out] of [[mine, false], [foreign, true]] as const) {
  for (const of of list) {
    Deno.test(`outOfScope() ${out ? "reports" : "allows"} a change of ${JSON.stringify(of)}`, () => {
      const change = { operation: "unmount", of };
      assert.deepEqual(outOfScope([change], scope), out ? [change] : []);
    });
  }
}

Deno.test("outOfScope() reports another volume's path even where the request names it", () => {
  const change = { operation: "unmount", of: "/pods/2/mount" };
  assert.deepEqual(outOfScope([change], { ...scope, paths: ["/pods/2/mount", "/"] }), [change]);
});

Deno.test("watchedNode() reports what a stage and a publish change, and a stray unmount", async () => {
  const node = new FakeNode();
  const changes: Change[] = [];
  const deps = watchedNode(node.deps, changes);
  const service = new NodeService(deps);
  const context = { requestId: "t", signal: new AbortController().signal };
  await service.stage(node.stageRequest(), context);
  const request = node.stageRequest();
  await service.publish({ ...request, targetPath, readOnly: false }, context);
  const operations = new Set(changes.map(({ operation }) => operation));
  for (const operation of ["writeFile", "connect", "format", "mountDevice", "makeFolder", "bindFolder"]) {
    assert.ok(operations.has(operation), operation);
  }
  const own = {
    volumeId: request.volumeId,
    paths: [request.stagingPath, targetPath],
    statePath: "/state",
    devices: [node.device.path],
    others: [],
  };
  assert.deepEqual(outOfScope(changes, own), []);
  await deps.mounts.unmount("/kubelet/pods/2/mount", context);
  assert.deepEqual(outOfScope(changes, own).map(({ of }) => of), ["/kubelet/pods/2/mount"]);
});
