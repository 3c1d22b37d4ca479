// What the controller reports about the health of volumes. Each problem is made on the simulated router, and is
// reported under its own name, for the affected volume only. Looking changes nothing.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { changesNothing, create, publishRequest, state } from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";

type Illness = (stack: Stack, id: string) => Promise<unknown>;

async function edit(stack: Stack, slot: string, body: Readonly<Record<string, unknown>>): Promise<void> {
  await control(stack.simulator, `PATCH /disks/${slot}`, body);
}

async function diskOf(stack: Stack, slot: string) {
  return (await state(stack)).disks.find((disk) => disk.slot === slot)!;
}

async function sickIds({ clients }: Stack): Promise<string[]> {
  const { entries } = await clients.controller.call("ControllerListVolumeHealth", {});
  return entries.map(({ volumeId }) => volumeId);
}

/** One problem of each status; src/volume/rules/health/health_test.ts tests all of them. */
const illnesses: readonly (readonly [reason: string, status: string, make: Illness, heal?: Illness])[] = [
  ["RecordDamaged", "INACCESSIBLE", (stack, id) => edit(stack, id, { comment: "{rds1 c=4d24" })],
  [
    "ImageMissing",
    "DATA_LOSS",
    async (stack, id) => control(stack.simulator, `DELETE /files/${(await diskOf(stack, id))["file-path"]}`),
  ],
  [
    "ExportedWithoutHolder",
    "DEGRADED",
    (stack, id) => edit(stack, id, { "nvme-tcp-export": true }),
    ({ clients }, volumeId) =>
      clients.controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" }),
  ],
];

for (const [index, [reason, kind, make, heal]] of illnesses.entries()) {
  Deno.test(`health ${index + 1}: a volume with ${reason} is ${kind}, and no other is`, async () => {
    await using stack = await startStack();
    const { controller } = stack.clients;
    await create(stack, "pvc-well-1");
    const id = await create(stack, "pvc-sick");
    const well = await create(stack, "pvc-well-2");
    const get = async (volumeId: string) =>
      (await controller.call("ControllerGetVolumeHealth", { volumeId })).volumeHealth!;
    assert.deepEqual(await get(id), { volumeId: id, healthStatuses: [] });
    await make(stack, id);
    await changesNothing(stack, async () => {
      const health = await get(id);
      assert.equal(health.volumeId, id);
      assert.deepEqual(health.healthStatuses.map((one) => [one.reason, one.status]), [[reason, kind]]);
      assert.match(health.healthStatuses[0]!.message, /^[a-z].*[^.]$/);
      const { entries } = await controller.call("ControllerListVolumeHealth", {});
      assert.deepEqual(entries, [health]);
      assert.deepEqual((await get(well)).healthStatuses, []);
    });
    if (heal === undefined) return;
    await heal(stack, id);
    assert.deepEqual([(await get(id)).healthStatuses, await sickIds(stack)], [[], []]);
  });
}

Deno.test("a disk whose size the router only rounds is unknown alone: its health is listed, and all others go on", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const odd = await create(stack, "pvc-odd");
  const well = await create(stack, "pvc-well");
  await edit(stack, odd, { "size-unprinted": true });
  const { entries } = await controller.call("ControllerListVolumeHealth", {});
  assert.deepEqual(entries.map(({ volumeId, healthStatuses }) => [volumeId, healthStatuses[0]?.reason]), [
    [odd, "DiskUnreadable"],
  ]);
  await assert.rejects(
    controller.call("ControllerGetVolumeHealth", { volumeId: odd }),
    /UNAVAILABLE: .*the key size is missing/,
  );
  await controller.call("ControllerPublishVolume", publishRequest(well, "node-1"));
  await create(stack, "pvc-more");
});
