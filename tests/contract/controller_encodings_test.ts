// A comment with bytes that are no UTF-8, which the driver reads as U+FFFD: it could only write back another one, so it
// refuses to change the disk, and says why.
import { status } from "@grpc/grpc-js";
import {
  changesNothing,
  create,
  gibibyte,
  publishRequest,
  rejectsWith,
  snapshot,
} from "../support/controller_calls.ts";
import { growsOnline, type Stack, startStack } from "../support/stack.ts";

/** Each call that changes the disk or relies on its comment, with whether node-1 holds the volume. */
const calls: readonly (readonly [name: string, isHeld: boolean, Call])[] = [
  [
    "ControllerPublishVolume",
    false,
    ({ clients }, id) => clients.controller.call("ControllerPublishVolume", publishRequest(id)),
  ],
  [
    "ControllerUnpublishVolume",
    true,
    ({ clients }, volumeId) =>
      clients.controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" }),
  ],
  [
    "ControllerExpandVolume",
    true,
    ({ clients }, volumeId) =>
      clients.controller.call("ControllerExpandVolume", {
        volumeId,
        capacityRange: { requiredBytes: String(2n * gibibyte) },
      }),
  ],
  ["CreateSnapshot", false, (stack, volumeId) => snapshot(stack, "snap", volumeId)],
  [
    "DeleteVolume",
    false,
    ({ clients }, volumeId) => clients.controller.call("DeleteVolume", { volumeId }),
  ],
];

type Call = (stack: Stack, volumeId: string) => Promise<unknown>;

for (const [name, isHeld, call] of calls) {
  Deno.test(`${name} refuses a disk whose comment has bytes that are no UTF-8, and changes nothing`, async () => {
    await using stack = await startStack(growsOnline);
    const id = await create(stack, "pvc-a");
    if (isHeld) await stack.clients.controller.call("ControllerPublishVolume", publishRequest(id));
    spoilComment(stack, id);
    await changesNothing(
      stack,
      () => rejectsWith(status.FAILED_PRECONDITION, call(stack, id), /comment on the router.*non-ASCII/),
    );
  });
}

/** Puts a person's note before the record, in an encoding of its own, as the driver reads it. */
function spoilComment({ simulator }: Stack, slot: string): void {
  const { disks } = simulator.model;
  const disk = disks.findBySlot(slot)!;
  disks.replace({ ...disk, comment: `shelf \ufffd ${disk.comment}` });
}
