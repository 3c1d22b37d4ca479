import assert from "node:assert/strict";
import { FakeNode, nqn } from "../../../tests/fakes/node_deps.ts";
import { NodeService } from "../node_service.ts";
import { VolumeError } from "../../volume/errors.ts";
import { PathWatch } from "./path_watch.ts";

const addresses = ["10.0.0.1", "10.0.0.2"];
const missing = { address: "10.0.0.2", reason: undefined };

/** A node with a watch; no call holds a lock unless the test says so. */
class Scene extends FakeNode {
  locked = false;
  readonly watch = new PathWatch({
    deps: this.deps,
    lock: { tryTake: () => this.locked ? undefined : () => {} },
  });

  stageTwo(): Promise<void> {
    return this.stage({}, { nvmeAddress: addresses.join(",") });
  }

  get added(): number {
    return this.operations.filter((operation) => operation === "addPaths").length;
  }
}

Deno.test("the watch adds the path that a stage did not wait for, and is told of it", async () => {
  const node = new Scene();
  node.missingPaths = [missing];
  let told = 0;
  const service = new NodeService({ ...node.deps, pathWatch: { lacking: () => void told++ } });
  const request = node.stageRequest({}, { nvmeAddress: addresses.join(",") });
  await service.stage(request, { requestId: "test", signal: new AbortController().signal });
  assert.equal(told, 1);
  await node.watch.check();
  assert.deepEqual([node.added, node.missingPaths], [1, []]);
});

Deno.test("the watch begins a round as soon as a volume lacks a path, and else every 30 s", async () => {
  const node = new Scene();
  node.missingPaths = [missing];
  node.staysMissing = () => true;
  node.watch.start();
  await node.clock.advance(0);
  await node.stageTwo();
  assert.equal(node.added, 0);
  node.watch.lacking();
  await node.clock.advance(0);
  assert.equal(node.added, 1);
  await node.clock.advance(30_000);
  assert.equal(node.added, 2);
  await node.watch.stop();
});

Deno.test("the watch leaves alone a volume with all its paths, one that is not staged, and one without any", async () => {
  const node = new Scene();
  await node.stage();
  await node.watch.check();
  await node.unstage();
  await node.stageTwo();
  node.setStagingState({ staged: false });
  await node.watch.check();
  node.setStagingState({ staged: true });
  node.device.connected = false;
  await node.watch.check();
  assert.equal(node.added, 0);
  node.device.connected = true;
  await node.watch.check();
  assert.equal(node.added, 1);
});

Deno.test("the watch drops the connection that it made beside an unstage, as soon as no call holds the lock", async () => {
  const node = new Scene();
  await node.stageTwo();
  node.before = (operation) => {
    if (operation !== "addPaths") return;
    node.before = () => {};
    node.table = [];
    node.paths.nodes.delete("/state/volumes/pvc-1.json");
  };
  node.locked = true;
  await node.watch.check();
  assert.equal(node.devices.get(nqn)?.connected, true);
  node.locked = false;
  await node.watch.check();
  assert.equal(node.devices.get(nqn)?.connected, false);
});

Deno.test("the watch leaves a raw device with its pod whose state file was damaged meanwhile", async () => {
  const node = new Scene();
  node.missingPaths = [missing];
  const capability = { access: "block", mode: "single-node-writer" } as const;
  await node.stage({ capability }, { nvmeAddress: addresses.join(",") });
  await node.publish({ capability });
  node.before = (operation) => {
    if (operation !== "addPaths") return;
    node.before = () => {};
    node.paths.nodes.set("/state/volumes/pvc-1.json", { kind: "file", text: "{" });
  };
  for (let round = 0; round < 2; round++) await node.watch.check();
  assert.equal(node.devices.get(nqn)?.connected, true);
});

Deno.test("the watch looks again at a connection whose making did not end in its time", async () => {
  const node = new Scene();
  await node.stageTwo();
  node.missingPaths = [missing];
  node.before = (operation) => {
    if (operation === "addPaths") throw new VolumeError("deadline", "Cannot wait any longer");
  };
  await node.watch.check();
  node.before = () => {};
  // The kernel ends it now, and the volume was unstaged meanwhile.
  node.table = [];
  node.paths.nodes.delete("/state/volumes/pvc-1.json");
  await node.watch.check();
  assert.equal(node.devices.get(nqn)?.connected, false);
});

Deno.test("the watch says once which path is missing, and once that it is there", async () => {
  const node = new Scene();
  node.missingPaths = [{ ...missing, reason: "silent" }];
  node.staysMissing = () => true;
  await node.stageTwo();
  for (let round = 0; round < 3; round++) await node.watch.check();
  node.staysMissing = () => false;
  for (let round = 0; round < 3; round++) await node.watch.check();
  const said = node.reported.filter((text) => text.includes("path"));
  assert.deepEqual(said, [
    "one path of several is missing",
    "every path of a volume is there, or the volume has gone",
  ]);
});

Deno.test("the watch connects with the parameters of the volume's StorageClass", async () => {
  const node = new Scene();
  node.missingPaths = [missing];
  const volumeContext = { ctrlLossTmo: "600", keepAliveTmo: "3", dataDigest: "true" };
  await node.stage({ volumeContext }, { nvmeAddress: addresses.join(",") });
  let asked: unknown;
  const { addPaths } = node.deps.connector;
  node.deps.connector.addPaths = (target, context) => {
    asked = target;
    return addPaths(target, context);
  };
  await node.watch.check();
  assert.deepEqual(asked, {
    ...{ nqn, addresses, port: 4420, digests: ["data"] },
    ...{ ctrlLossTmo: 600, keepAliveTmo: 3 },
  });
});
