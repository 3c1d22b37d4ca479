// Kills the node service (kill -9) between any two steps on volumes with a map, and in the middle of a reboot of the
// router. The next process succeeds, and waiting I/O is neither lost nor sent to another device.
import assert from "node:assert/strict";
import {
  block,
  call,
  ext4,
  FakeNode,
  injected,
  nqn,
  sizeBytes,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { NodeService } from "../node_service.ts";
import { LayerWatch } from "./layer_watch.ts";

const name = "rds-csi-pvc-1";
const volumeContext = { deviceLayer: "multipath", ctrlLossTmo: "600" };
const capabilities = { ext4, block };
const later = nqn.replace("1-0a0b0c0d", "2-0a0b0c0d");

/**
 * Runs an action on a fresh node once for each of its steps, and kills the process before that step: it and all later
 * steps do not happen. `check` sees what is left after the process is gone.
 */
async function killAtEachStep(
  prepare: () => Promise<FakeNode>,
  act: (node: FakeNode) => Promise<unknown>,
  check: (node: FakeNode, step: string) => Promise<void>,
): Promise<void> {
  const whole = await prepare();
  const first = whole.operations.length;
  await act(whole);
  assert.ok(whole.operations.length > first);
  for (let at = first + 1; at <= whole.operations.length; at++) {
    const node = await prepare();
    node.before = (_, count) => {
      if (count >= at) throw injected;
    };
    // A check of the maps never fails.
    await act(node).catch((error) => assert.ok(error instanceof Error));
    node.before = () => {};
    node.held.clear(); // The kernel closes what the killed process held open.
    node.showDevices();
    await check(node, `before ${whole.operations[at - 1]}`);
  }
}

/** The first checks of a node service that has just started. It takes two to see that I/O makes no progress. */
async function firstLooks(node: FakeNode): Promise<void> {
  const { deps } = node;
  const { fencing } = new NodeService(deps);
  const watch = new LayerWatch({ deps, fencing, lock: { tryTake: () => () => {} } });
  await watch.check();
  await watch.check();
}

async function inUse(capability: Capability): Promise<FakeNode> {
  const node = new FakeNode();
  Object.assign(node.device, { uniqueId: "a".repeat(32), filesystemUuid: "u-1" });
  await node.stage({ volumeContext, capability });
  await node.publish({ capability });
  await firstLooks(node);
  return node;
}

/** The router comes back and gives its export another identity. */
function renew(node: FakeNode): void {
  Object.assign(node.device, { path: "/dev/loop9", deviceNumber: "7:9", uniqueId: "b".repeat(32) });
  node.paths.nodes.set(node.device.path, { kind: "block", deviceNumber: "7:9" });
  node.showDevices();
}

const absences: Readonly<Record<string, (node: FakeNode) => void>> = {
  "another identity": renew,
  "a connection that the kernel has given up": (node) => {
    node.device.connected = false;
    renew(node);
  },
  "a path that has failed": (node) => void (node.mapper.maps.get(name)!.table!.failed = true),
};

/** Waiting I/O is neither lost nor left over after a check by a process that was not killed. */
async function goesOnAndEnds(node: FakeNode, step: string): Promise<void> {
  assert.equal(node.mapper.write(name), "done", step);
  assert.equal(node.mapper.maps.get(name)!.inactive, undefined, step);
  assert.equal(node.stagingState!.device!.uniqueId, node.device.uniqueId, step);
  await node.unpublish();
  await node.unstage();
  nothingLeft(node, step);
}

function nothingLeft(node: FakeNode, step: string): void {
  assert.equal(node.mapper.maps.size, 0, step);
  assert.deepEqual(node.table, [], step);
  assert.equal(node.device.connected, false, step);
  assert.equal(node.stagingState, undefined, step);
}

for (const [kind, capability] of Object.entries(capabilities)) {
  for (const [what, makeAbsent] of Object.entries(absences)) {
    const absent = async () => {
      const node = await inUse(capability);
      makeAbsent(node);
      assert.equal(node.mapper.write(name), "waits");
      return node;
    };

    Deno.test(`a repair that is killed is finished by the next process: ${kind}, ${what}`, async () => {
      await killAtEachStep(absent, firstLooks, async (node, step) => {
        assert.notEqual(node.mapper.write(name), "fails", step);
        await firstLooks(node);
        await goesOnAndEnds(node, step);
      });
    });

    Deno.test(`a stage that is killed while it repairs is finished by the next process: ${kind}, ${what}`, async () => {
      const stage = (node: FakeNode) => node.stage({ volumeContext, capability }, { mayFormat: "false" });
      await killAtEachStep(absent, stage, async (node, step) => {
        assert.notEqual(node.mapper.write(name), "fails", step);
        await firstLooks(node);
        await goesOnAndEnds(node, step);
      });
    });
  }

  Deno.test(`an expand that is killed grows at the next one: ${kind}`, async () => {
    const range = { requiredBytes: sizeBytes * 2n, limitBytes: 0n };
    const expand = (node: FakeNode) =>
      node.service.expand({ volumeId, volumePath: targetPath, range }, call());
    const grown = async () => {
      const node = await inUse(capability);
      node.device.sizeBytes = range.requiredBytes;
      return node;
    };
    await killAtEachStep(grown, expand, async (node, step) => {
      await firstLooks(node);
      assert.equal(node.mapper.write(name), "done", step);
      await expand(node);
      assert.equal((await node.deps.maps!.find(name))!.sizeBytes, range.requiredBytes, step);
      await goesOnAndEnds(node, step);
    });
  });

  Deno.test(`what is fenced while it waits, by a process that is killed, stays fenced: ${kind}`, async () => {
    const fenced = async () => {
      const node = await inUse(capability);
      node.device.connected = false;
      node.showDevices();
      await node.unpublish();
      node.offered = () => [later];
      return node;
    };
    await killAtEachStep(fenced, (node) => node.unstage(), async (node, step) => {
      await firstLooks(node);
      if (node.mapper.maps.size > 0) assert.notEqual(node.mapper.write(name), "done", step);
      await node.unstage();
      nothingLeft(node, step);
    });
  });

  Deno.test(`a publish that is killed is completed by the next one: ${kind}`, async () => {
    const staged = async () => {
      const node = new FakeNode();
      await node.stage({ volumeContext, capability });
      return node;
    };
    await killAtEachStep(staged, (node) => node.publish({ capability }), async (node, step) => {
      await firstLooks(node);
      await node.publish({ capability });
      assert.equal(node.table.filter(({ mountPoint }) => mountPoint === targetPath).length, 1, step);
      await goesOnAndEnds(node, step);
    });
  });
}

Deno.test("a process that is killed while it checks a device that is not the volume leaves all I/O waiting", async () => {
  for (const change of [{ filesystemUuid: "u-2" }, { content: "blank" }, { nsid: 2 }] as const) {
    const swapped = async () => {
      const node = await inUse(ext4);
      node.device.connected = false;
      renew(node);
      Object.assign(node.device, change);
      return node;
    };
    await killAtEachStep(swapped, firstLooks, async (node, step) => {
      await firstLooks(node);
      assert.equal(node.mapper.write(name), "waits", step);
      assert.equal(node.mapper.maps.get(name)!.table!.path, "7:3", step);
    });
  }
});

Deno.test("what is given up after ctrlLossTmo by a process that is killed is given up by the next one", async () => {
  const overdue = async () => {
    const node = await inUse(ext4);
    node.device.connected = false;
    node.offered = () => [];
    node.showDevices();
    return node;
  };
  const wait = async (node: FakeNode) => {
    const { deps } = node;
    const { fencing } = new NodeService(deps);
    const watch = new LayerWatch({ deps, fencing, lock: { tryTake: () => () => {} } });
    await watch.check();
    await node.clock.advance(600_000);
    await watch.check();
  };
  await killAtEachStep(overdue, wait, async (node, step) => {
    await wait(node);
    assert.equal(node.mapper.write(name), "fails", step);
    await node.unpublish();
    await node.unstage();
    nothingLeft(node, step);
  });
});
