// Disks of volumes that the router itself uses, as the simulated router shows them. None is published. Where the driver
// can correct the disk, it does so in the command that turns the export on.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import {
  changesNothing,
  cost,
  create,
  publishRequest,
  rejectsWith,
  state,
} from "../support/controller_calls.ts";
import { type Stack, startStack } from "../support/stack.ts";

type Edit = Readonly<Record<string, unknown>>;

async function diskOf(stack: Stack, slot: string) {
  return (await state(stack)).disks.find((disk) => disk.slot === slot)!;
}

/** A volume whose disk was edited, and calls of it. */
async function edited(stack: Stack, name: string, edit: Edit) {
  const { controller } = stack.clients;
  const volumeId = await create(stack, name);
  await control(stack.simulator, `PATCH /disks/${volumeId}`, edit);
  const publish = () => controller.call("ControllerPublishVolume", publishRequest(volumeId));
  const health = async () => {
    const { volumeHealth } = await controller.call("ControllerGetVolumeHealth", { volumeId });
    return volumeHealth!.healthStatuses.map(({ reason }) => reason);
  };
  const unpublish = () => controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
  return { volumeId, publish, unpublish, health };
}

const uses: readonly (readonly [use: Edit, text: RegExp])[] = [
  [{ "mount-point": "films" }, /its file system is mounted.*end that first.*mount-filesystem=no/],
  [{ "raid-master": "raid1" }, /member of an array/],
  [{ "iscsi-export": true }, /exported over iSCSI/],
  [{ "nfs-sharing": true }, /shared over NFS/],
  [
    { "smb-sharing": true, "mount-point": "films" },
    /shared over SMB.*\] mount-filesystem=no smb-sharing=no$/,
  ],
  [{ swap: true }, /swap space/],
  [{ disabled: true }, /it is disabled.*\] disabled=no$/],
];

Deno.test("a volume whose disk the router itself uses is not published, can be unpublished, and is not healthy", async () => {
  await using stack = await startStack();
  for (const [index, [use, text]] of uses.entries()) {
    const { volumeId, publish, unpublish, health } = await edited(stack, `pvc-${index}`, use);
    const { comment } = await diskOf(stack, volumeId);
    const refused = () => rejectsWith(status.FAILED_PRECONDITION, publish(), text);
    await refused();
    const disk = await diskOf(stack, volumeId);
    assert.deepEqual([disk["comment"], disk["nvme-tcp-export"]], [comment, false], "as it was remembered");
    await changesNothing(stack, refused);
    assert.deepEqual(await health(), ["UsedByRouter"], String(text));
    const other = await create(stack, `pvc-held-${index}`);
    const { controller } = stack.clients;
    const held = publishRequest(other);
    await controller.call("ControllerPublishVolume", held);
    await control(stack.simulator, `PATCH /disks/${other}`, use);
    await changesNothing(stack, async () => {
      await rejectsWith(status.FAILED_PRECONDITION, controller.call("ControllerPublishVolume", held), text);
    });
    await controller.call("ControllerUnpublishVolume", { volumeId: other, nodeId: "node-1" });
    assert.equal((await diskOf(stack, other))["nvme-tcp-export"], false);
    await unpublish();
    assert.equal((await diskOf(stack, volumeId))["nvme-tcp-export"], false);
  }
});

Deno.test("a disk that the router has marked for sharing by itself is published, because it is not mounted", async () => {
  await using stack = await startStack();
  const shared = { "smb-sharing": true, "media-sharing": true };
  const { publish, unpublish, health } = await edited(stack, "pvc-1", shared);
  await publish();
  assert.deepEqual(await health(), []);
  await unpublish();
});

Deno.test("a disk that the router might mount is kept from that together with the export, in as many commands", async () => {
  await using stack = await startStack();
  const { volumeId, publish, health } = await edited(stack, "pvc-1", { "mount-filesystem": true });
  assert.deepEqual(await health(), ["MayBeMounted"]);
  assert.equal(await cost(stack, publish), 1);
  const { "mount-filesystem": mount, "nvme-tcp-export": exported } = await diskOf(stack, volumeId);
  assert.deepEqual([mount, exported, await health()], [false, true, []]);
  await control(stack.simulator, `PATCH /disks/${volumeId}`, { "mount-filesystem": true });
  await changesNothing(stack, publish);
  assert.deepEqual(await health(), ["MayBeMounted"]);
});
