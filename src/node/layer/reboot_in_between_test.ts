// The router reboots between any two steps of a call on a volume with a map. This call or the next one succeeds, and no
// step works on another device than the volume.
import assert from "node:assert/strict";
import {
  block,
  call,
  ext4,
  type FakeDevice,
  FakeNode,
  nqn,
  sizeBytes,
  targetPath,
  volumeId,
} from "../../../tests/fakes/node_deps.ts";
import type { Capability } from "../../volume/model/capabilities.ts";
import { VolumeError } from "../../volume/errors.ts";
import { LayerWatch } from "./layer_watch.ts";

const name = "rds-csi-pvc-1";
const volumeContext = { deviceLayer: "multipath" };
const range = { requiredBytes: sizeBytes * 2n, limitBytes: 0n };

/** A reboot replaces the volume's device by another one with the same content. */
function renew(node: FakeNode, change: Partial<FakeDevice> = {}): void {
  const path = change.path ?? "/dev/loop9";
  const deviceNumber = change.deviceNumber ?? "7:9";
  const device = { ...node.device, path, deviceNumber, uniqueId: "b".repeat(32), ...change };
  node.devices.set(nqn, device);
  node.paths.nodes.set(path, { kind: "block", deviceNumber });
  node.showDevices();
}

const reboots: Readonly<Record<string, (node: FakeNode) => void>> = {
  "with a new identity": (node) => renew(node),
  "with a new identity that its map is on by the next step": (node) => {
    renew(node);
    const table = node.mapper.maps.get(name)?.table;
    if (table !== undefined) Object.assign(table, { path: node.device.deviceNumber, failed: false });
    node.mapper.show();
  },
  "and the kernel gives the connection up": (node) => renew(node, { connected: false }),
};

/** A call, and the node that it starts from. */
interface Act {
  readonly prepare: (capability: Capability) => Promise<FakeNode>;
  readonly act: (node: FakeNode, capability: Capability) => Promise<unknown>;
  /** Whether the volume is gone from the node afterwards. */
  readonly ends?: boolean;
}

/** A node on which no volume was staged yet. */
function newNode(): FakeNode {
  const node = new FakeNode();
  Object.assign(node.device, { uniqueId: "a".repeat(32), filesystemUuid: "u-1" });
  return node;
}

async function staged(capability: Capability): Promise<FakeNode> {
  const node = newNode();
  await node.stage({ volumeContext, capability });
  return node;
}

const acts: Readonly<Record<string, Act>> = {
  "the first stage, with its mkfs": {
    prepare: () => Promise.resolve(newNode()),
    act: (node, capability) => node.stage({ volumeContext, capability }),
  },
  "a later stage, with its check": {
    prepare: async (capability) => {
      const node = await staged(capability);
      await node.unstage();
      return node;
    },
    act: (node, capability) => node.stage({ volumeContext, capability }, { mayFormat: "false" }),
  },
  "a publish": { prepare: staged, act: (node, capability) => node.publish({ capability }) },
  "an expand": {
    prepare: async (capability) => {
      const node = await staged(capability);
      await node.publish({ capability });
      node.device.sizeBytes = range.requiredBytes;
      return node;
    },
    act: (node) => node.service.expand({ volumeId, volumePath: targetPath, range }, call()),
  },
  "an unstage": { prepare: staged, act: (node) => node.unstage(), ends: true },
};

/** A call during which the router reboots. The device that it waits for does not come before its deadline. */
async function interrupted(node: FakeNode, act: () => Promise<unknown>, step: string): Promise<void> {
  let isOver = false;
  const done = act().catch((error) => assert.ok(VolumeError.is(error), `${step}: ${error}`))
    .finally(() => isOver = true);
  // What takes no time, such as undoing, is over before any passes.
  for (let rounds = 0; rounds < 5 && !isOver; rounds++) await node.clock.advance(0);
  for (let minutes = 0; minutes < 10 && !isOver; minutes++) await node.clock.advance(60_000);
  await done;
  node.before = () => {};
  node.held.clear();
}

/** Repeats the call until it succeeds, as the kubelet does, while the node service checks its maps. */
async function untilDone(node: FakeNode, act: () => Promise<unknown>): Promise<void> {
  const watch = new LayerWatch({
    deps: node.deps,
    fencing: node.service.fencing,
    lock: { tryTake: () => () => {} },
  });
  for (let attempt = 0;; attempt++) {
    await watch.check();
    await watch.check();
    try {
      await act();
      return;
    } catch (error) {
      assert.ok(VolumeError.is(error), String(error));
      assert.ok(attempt < 3, error.message);
    }
  }
}

for (const [kind, capability] of Object.entries({ ext4, block })) {
  for (const [what, { prepare, act, ends }] of Object.entries(acts)) {
    for (const [how, reboot] of Object.entries(reboots)) {
      Deno.test(`a router that reboots in the middle of ${what} costs a pause: ${kind}, ${how}`, async () => {
        const whole = await prepare(capability);
        const first = whole.operations.length;
        await act(whole, capability);
        for (let at = first + 1; at <= whole.operations.length; at++) {
          const node = await prepare(capability);
          node.before = (_, count) => {
            if (count === at) reboot(node);
          };
          const step = whole.operations[at - 1]!;
          await interrupted(node, () => act(node, capability), step);
          await untilDone(node, () => act(node, capability));
          assert.ok(node.formats.length <= 2 && node.device.content === whole.device.content, step);
          assert.ok(!node.events.reported.includes("identity mismatch"), `${step}: nobody has to be woken`);
          if (ends === true) {
            assert.deepEqual([node.mapper.maps.size, node.table.length, node.device.connected], [
              0,
              0,
              false,
            ]);
            continue;
          }
          assert.equal(node.mapper.write(name), "done", step);
          assert.equal(node.mapper.maps.get(name)!.table!.path, node.device.deviceNumber, step);
        }
      });
    }
  }
}

Deno.test("no step of any call works on another image that a reboot put in the volume's place", async () => {
  for (const [what, { prepare, act }] of Object.entries(acts).slice(1)) {
    const whole = await prepare(ext4);
    const first = whole.operations.length;
    await act(whole, ext4);
    for (let at = first + 1; at <= whole.operations.length; at++) {
      const node = await prepare(ext4);
      const swap = () => renew(node, { filesystemUuid: "u-2", content: "xfs" });
      node.before = (_, count) => {
        if (count === at) swap();
      };
      const step = `${what}, before ${whole.operations[at - 1]}`;
      await interrupted(node, () => act(node, ext4), step);
      const watch = new LayerWatch({
        deps: node.deps,
        fencing: node.service.fencing,
        lock: { tryTake: () => () => {} },
      });
      await watch.check();
      await act(node, ext4).catch((error) => assert.ok(VolumeError.is(error), `${step}: ${error}`));
      await watch.check();
      assert.equal(node.device.content, "xfs", step);
      const on = node.mapper.maps.get(name)?.table?.path;
      assert.notEqual(on, "7:9", step);
      assert.ok(!node.table.some(({ deviceNumber }) => deviceNumber === "7:9"), step);
    }
  }
});
