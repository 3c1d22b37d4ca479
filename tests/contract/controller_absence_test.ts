// A disk that the router does not show is not a deleted disk. Each call of the controller is made while disks appear
// late after a boot, while the pool is not mounted, and while an export lingers. No call reports anything as gone, by
// NOT_FOUND, by the OK of a delete or by an empty list, and no call answers OK for something that is not true.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import {
  changesNothing,
  cloneOf,
  contents,
  create,
  gibibyte,
  mount,
  publishRequest,
  rejectsWith,
  snapshot,
} from "../support/controller_calls.ts";
import { type Stack, type StackOptions, startStack } from "../support/stack.ts";

/** What is on the router, and an id that never existed. */
interface Scene {
  readonly stack: Stack;
  /** A volume that no node holds. */
  readonly idle: string;
  /** A volume that node-1 holds. */
  readonly held: string;
  readonly snapshotId: string;
}

const never = "pvc-never";
const neverSnapshot = `snap-${"0".repeat(28)}`;
const twice = { capacityRange: { requiredBytes: String(2n * gibibyte) } };

type Call = (scene: Scene) => Promise<unknown>;

function controller({ stack }: Scene) {
  return stack.clients.controller;
}

const calls: Readonly<Record<string, Call>> = {
  "CreateVolume, new": ({ stack }) => create(stack, "pvc-new"),
  "CreateVolume, again": ({ stack }) => create(stack, "pvc-idle"),
  "CreateVolume, otherwise": ({ stack }) => create(stack, "pvc-idle", twice),
  "CreateVolume from a volume": ({ stack, idle }) => cloneOf(stack, "pvc-new", { volumeId: idle }),
  "CreateVolume from a snapshot": ({ stack, snapshotId }) => cloneOf(stack, "pvc-new", { snapshotId }),
  "CreateVolume from no volume": ({ stack }) => cloneOf(stack, "pvc-new", { volumeId: never }),
  "CreateVolume from no snapshot": ({ stack }) => cloneOf(stack, "pvc-new", { snapshotId: neverSnapshot }),
  "DeleteVolume, idle": (s) => controller(s).call("DeleteVolume", { volumeId: s.idle }),
  "DeleteVolume, held": (s) => controller(s).call("DeleteVolume", { volumeId: s.held }),
  "DeleteVolume, never made": (s) => controller(s).call("DeleteVolume", { volumeId: never }),
  "Publish, idle": (s) => controller(s).call("ControllerPublishVolume", publishRequest(s.idle)),
  "Publish, held": (s) => controller(s).call("ControllerPublishVolume", publishRequest(s.held)),
  "Publish, held by another": (s) =>
    controller(s).call("ControllerPublishVolume", publishRequest(s.held, "node-2")),
  "Publish, never made": (s) => controller(s).call("ControllerPublishVolume", publishRequest(never)),
  "Unpublish, idle": (s) =>
    controller(s).call("ControllerUnpublishVolume", { volumeId: s.idle, nodeId: "node-1" }),
  "Unpublish, held": (s) =>
    controller(s).call("ControllerUnpublishVolume", { volumeId: s.held, nodeId: "node-1" }),
  "Unpublish, from all": (s) =>
    controller(s).call("ControllerUnpublishVolume", { volumeId: s.held, nodeId: "" }),
  "Unpublish, never made": (s) =>
    controller(s).call("ControllerUnpublishVolume", { volumeId: never, nodeId: "node-1" }),
  "Expand, idle": (s) => controller(s).call("ControllerExpandVolume", { volumeId: s.idle, ...twice }),
  "Expand, never made": (s) => controller(s).call("ControllerExpandVolume", { volumeId: never, ...twice }),
  "Validate, idle": (s) =>
    controller(s).call("ValidateVolumeCapabilities", { volumeId: s.idle, volumeCapabilities: [mount] }),
  "Validate, never made": (s) =>
    controller(s).call("ValidateVolumeCapabilities", { volumeId: never, volumeCapabilities: [mount] }),
  "GetVolume, idle": (s) => controller(s).call("ControllerGetVolume", { volumeId: s.idle }),
  "GetVolume, never made": (s) => controller(s).call("ControllerGetVolume", { volumeId: never }),
  "GetVolumeHealth, held": (s) => controller(s).call("ControllerGetVolumeHealth", { volumeId: s.held }),
  "GetVolumeHealth, never made": (s) => controller(s).call("ControllerGetVolumeHealth", { volumeId: never }),
  ListVolumes: (s) => controller(s).call("ListVolumes", {}),
  ListVolumeHealth: (s) => controller(s).call("ControllerListVolumeHealth", {}),
  GetCapacity: (s) => controller(s).call("GetCapacity", {}),
  "CreateSnapshot, new": ({ stack, idle }) => snapshot(stack, "snap-new", idle),
  "CreateSnapshot, again": ({ stack, idle }) => snapshot(stack, "snap", idle),
  "CreateSnapshot of no volume": ({ stack }) => snapshot(stack, "snap-new", never),
  "DeleteSnapshot, there": (s) => controller(s).call("DeleteSnapshot", { snapshotId: s.snapshotId }),
  "DeleteSnapshot, never made": (s) => controller(s).call("DeleteSnapshot", { snapshotId: neverSnapshot }),
  ListSnapshots: (s) => controller(s).call("ListSnapshots", {}),
  "ListSnapshots of a volume": (s) => controller(s).call("ListSnapshots", { sourceVolumeId: s.idle }),
  "ListSnapshots of one": (s) => controller(s).call("ListSnapshots", { snapshotId: s.snapshotId }),
  "GetSnapshot, there": (s) => controller(s).call("GetSnapshot", { snapshotId: s.snapshotId }),
  "GetSnapshot, never made": (s) => controller(s).call("GetSnapshot", { snapshotId: neverSnapshot }),
};

/**
 * Each outcome that a call may have other than UNAVAILABLE; "changes" is an OK after which the router's state is
 * different.
 */
type Outcome = "OK" | "changes" | "ALREADY_EXISTS" | "FAILED_PRECONDITION";

interface Condition {
  readonly name: string;
  readonly make: (scene: Scene) => Promise<unknown>;
  /** What the message of every UNAVAILABLE must match. */
  readonly texts: RegExp;
  readonly outcomes: Readonly<Record<string, Outcome>>;
}

/** While the router shows existing disks, calls about them can be answered and carried out. */
const shown: Readonly<Record<string, Outcome>> = {
  "CreateVolume, otherwise": "ALREADY_EXISTS",
  "DeleteVolume, held": "FAILED_PRECONDITION",
  "Unpublish, idle": "OK",
  "Unpublish, held": "changes",
  "Unpublish, from all": "changes",
  "Validate, idle": "OK",
  "GetVolume, idle": "OK",
};

const conditions: readonly Condition[] = [
  {
    name: "disks are late after a boot",
    make: (scene) => reboot(scene, 600_000),
    texts: /booted only \d+ s ago/,
    outcomes: { "CreateSnapshot, again": "OK" },
  },
  {
    name: "the router has just booted, and shows the disks",
    make: (scene) => reboot(scene, 0),
    texts: /booted only \d+ s ago/,
    outcomes: {
      ...shown,
      "CreateVolume, again": "OK",
      "Publish, idle": "changes",
      "Publish, held": "OK",
      "Publish, held by another": "FAILED_PRECONDITION",
      "Expand, idle": "changes",
      "CreateSnapshot, new": "changes",
      "CreateSnapshot, again": "OK",
    },
  },
  {
    name: "the pool is not mounted, and its disks are not shown",
    make: (scene) => pool(scene, { mounted: false, vanish: true }),
    texts: /pool.* not mounted|no label/,
    outcomes: {},
  },
  {
    name: "the pool is not mounted, and its disks are shown",
    make: (scene) => pool(scene, { mounted: false }),
    texts: /pool.* not mounted|no label/,
    outcomes: { ...shown, "GetVolumeHealth, held": "OK", ListVolumeHealth: "OK" },
  },
];

/** Subvolumes, which the router uses by default, and plain files; each with the calls whose requests differ there. */
const layouts: readonly (readonly [string, StackOptions, RegExp])[] = [
  ["subvolumes", {}, /./],
  [
    "plain files",
    { simulator: { profile: "xfs-pool" }, reported: { copyReturns: "when-done" } },
    /Snapshot|from a|DeleteVolume|CreateVolume, new/,
  ],
];

async function withScene(options: StackOptions, test: (scene: Scene) => Promise<void>): Promise<void> {
  await using stack = await startStack(options);
  const idle = await create(stack, "pvc-idle");
  const held = await create(stack, "pvc-held");
  await stack.clients.controller.call("ControllerPublishVolume", publishRequest(held));
  const { snapshotId } = await snapshot(stack, "snap", idle);
  await test({ stack, idle, held, snapshotId });
}

function pool({ stack }: Scene, body: Readonly<Record<string, unknown>>): Promise<void> {
  return control(stack.simulator, "PATCH /disks/storage-pool", body);
}

/** Reboots the router, and waits until it is up and shows the disks that are not late. */
async function reboot({ stack }: Scene, disksLateMs: number): Promise<void> {
  await control(stack.simulator, "POST /reboot", { downMs: 1, disksLateMs });
  const { disks } = stack.simulator.model;
  const isThere = () => disks.list().some((disk) => disk.type === "file") === (disksLateMs === 0);
  while (stack.simulator.model.system.uptimeMs < 5 || !isThere()) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Makes a call, and checks that its outcome is the declared one and is true. */
async function judge(scene: Scene, call: Call, outcome: Outcome | undefined, text: RegExp): Promise<void> {
  if (outcome === "changes") {
    const before = await contents(scene.stack);
    await call(scene);
    assert.notDeepEqual(await contents(scene.stack), before);
    return;
  }
  await changesNothing(scene.stack, async () => {
    if (outcome === "OK") await call(scene);
    else if (outcome === undefined) await rejectsWith(status.UNAVAILABLE, call(scene), text);
    else await rejectsWith(status[outcome], call(scene));
  });
}

for (const [layout, options, wanted] of layouts) {
  for (const { name, make, texts: text, outcomes } of conditions) {
    Deno.test(`while ${name}, no call reports anything as gone, or as done when it is not: ${layout}`, async (t) => {
      const changing = Object.keys(outcomes).filter((call) =>
        outcomes[call] === "changes" && wanted.test(call)
      );
      await withScene(options, async (scene) => {
        await make(scene);
        for (const [what, call] of Object.entries(calls)) {
          if (!wanted.test(what) || outcomes[what] === "changes") continue;
          await t.step(what, () => judge(scene, call, outcomes[what], text));
        }
      });
      for (const what of changing) {
        await t.step(what, () =>
          withScene(options, async (scene) => {
            await make(scene);
            await judge(scene, calls[what]!, outcomes[what], text);
          }));
      }
    });
  }
}

Deno.test("calls that were refused while the pool was away succeed when it is back", async () => {
  await withScene({}, async (scene) => {
    const { stack, idle, held, snapshotId } = scene;
    const { controller } = stack.clients;
    await pool(scene, { mounted: false, vanish: true });
    await rejectsWith(status.UNAVAILABLE, controller.call("DeleteVolume", { volumeId: idle }));
    await pool(scene, { mounted: true, vanish: false });
    await controller.call("DeleteSnapshot", { snapshotId });
    await controller.call("DeleteVolume", { volumeId: idle });
    await controller.call("ControllerUnpublishVolume", { volumeId: held, nodeId: "node-1" });
    await controller.call("DeleteVolume", { volumeId: held });
    assert.deepEqual((await controller.call("ListVolumes", {})).entries, []);
    assert.deepEqual((await controller.call("ListSnapshots", {})).entries, []);
  });
});

const lingering = { behaviours: { unexport: 60_000 } };

Deno.test("while an export lingers, no controller publishes the volume to another node or deletes it", async () => {
  const options = { simulator: lingering, flags: ["--unexport-grace", "60s"] };
  await withScene(options, async ({ stack, held }) => {
    const { controller } = stack.clients;
    const restarted = await stack.another();
    await controller.call("ControllerUnpublishVolume", { volumeId: held, nodeId: "node-1" });
    assert.equal(stack.simulator.model.exports.list().length, 1, "it lingers");
    await changesNothing(stack, async () => {
      for (const { clients } of [stack, restarted]) {
        const publish = (nodeId: string) =>
          clients.controller.call("ControllerPublishVolume", publishRequest(held, nodeId), 3000);
        const remove = clients.controller.call("DeleteVolume", { volumeId: held }, 3000);
        await rejectsWith(status.UNAVAILABLE, remove, /only a moment ago.*try again in \d+ s/);
        for (const nodeId of ["node-1", "node-2"]) {
          await rejectsWith(status.UNAVAILABLE, publish(nodeId), /only a moment ago.*try again in \d+ s/);
        }
        const { status: known } = await clients.controller.call("ControllerGetVolume", { volumeId: held });
        assert.deepEqual(known?.publishedNodeIds, []);
        await clients.controller.call("ControllerUnpublishVolume", { volumeId: held, nodeId: "node-1" });
      }
    });
  });
});
Deno.test("a publish and a delete with enough time wait until the export is gone", async () => {
  const options = { simulator: { behaviours: { unexport: 800 } }, flags: ["--unexport-grace", "1500ms"] };
  await withScene(options, async ({ stack, held }) => {
    const { controller } = stack.clients;
    const served = () => stack.simulator.model.exports.list().map(String);
    const [first] = served();
    await controller.call("ControllerUnpublishVolume", { volumeId: held, nodeId: "node-1" });
    assert.deepEqual(served(), [first]);
    const { publishContext } = await controller.call(
      "ControllerPublishVolume",
      publishRequest(held, "node-2"),
    );
    assert.deepEqual(served(), [publishContext["nqn"]]);
    await controller.call("ControllerUnpublishVolume", { volumeId: held, nodeId: "node-2" });
    await controller.call("DeleteVolume", { volumeId: held });
    assert.deepEqual(served(), []);
  });
});
