// Mistakes in requests: each call refuses them with the right code, and changes nothing. The valid names, sizes,
// parameters and capabilities are tested beside src/volume; this file has one mistake of each kind, for each call that
// can contain it.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { CreateVolumeRequest, VolumeCapability } from "../../src/csi/generated/csi.ts";
import type { Sent } from "../../src/csi/server/proto.ts";
import {
  block,
  changesNothing,
  create,
  gibibyte,
  mount,
  publishRequest,
  rejectsWith,
  snapshot,
} from "../support/controller_calls.ts";
import { growsOnline, type Stack, startStack } from "../support/stack.ts";

const { INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ALREADY_EXISTS } =
  status;

/** Makes a call about a volume of 1 GiB that node-1 holds. */
type Ask = (stack: Stack, held: string) => Promise<unknown>;

function makes(overrides: Sent<CreateVolumeRequest>): Ask {
  return (stack) => create(stack, "pvc-bad", overrides);
}

function sized(requiredBytes: bigint, limitBytes = 0n) {
  return { capacityRange: { requiredBytes: String(requiredBytes), limitBytes: String(limitBytes) } };
}

function expands(requiredBytes: bigint, limitBytes = 0n, volumeId?: string): Ask {
  return ({ clients }, held) =>
    clients.controller.call("ControllerExpandVolume", {
      volumeId: volumeId ?? held,
      ...sized(requiredBytes, limitBytes),
    });
}

function publishes(nodeId: string, volumeId?: string): Ask {
  return ({ clients }, held) =>
    clients.controller.call("ControllerPublishVolume", publishRequest(volumeId ?? held, nodeId));
}

function freezes(request: Record<string, unknown>): Ask {
  return ({ clients }, held) =>
    clients.controller.call("CreateSnapshot", { name: "snap", sourceVolumeId: held, ...request });
}

const refusals: readonly (readonly [what: string, Ask, status, RegExp])[] = [
  ["no name", makes({ name: "" }), INVALID_ARGUMENT, /name/],
  ["no capability", makes({ volumeCapabilities: [] }), INVALID_ARGUMENT, /volume_capabilities/],
  [
    "a capability without access",
    makes({ volumeCapabilities: [{ accessMode: { mode: "SINGLE_NODE_WRITER" } }] }),
    INVALID_ARGUMENT,
    /neither/,
  ],
  ["one without mode", makes({ volumeCapabilities: [{ block: {} }] }), INVALID_ARGUMENT, /access mode/],
  ["mixed capabilities", makes({ volumeCapabilities: [mount, block] }), INVALID_ARGUMENT, /different kinds/],
  ["a negative size", makes(sized(-5n)), INVALID_ARGUMENT, /negative/],
  ["a limit below", makes(sized(2n * gibibyte, gibibyte)), OUT_OF_RANGE, /limit/],
  ["more than the pool", makes(sized(9n << 40n)), RESOURCE_EXHAUSTED, /storage-pool/],
  ["an unknown parameter", makes({ parameters: { colour: "red" } }), INVALID_ARGUMENT, /colour/],
  [
    "a parameter for PersistentVolumes",
    makes({ parameters: { static: "true" } }),
    INVALID_ARGUMENT,
    /static/,
  ],
  ["__proto__", makes({ parameters: JSON.parse('{"__proto__":"x"}') }), INVALID_ARGUMENT, /__proto__/],
  [
    "a path outside",
    makes({ parameters: { volumePath: "/storage-pool/other" } }),
    INVALID_ARGUMENT,
    /--base-path/,
  ],
  [
    "a mount option that nodes refuse",
    makes({ volumeCapabilities: [{ ...mount, mount: { fsType: "ext4", mountFlags: ["noatime", "bind"] } }] }),
    INVALID_ARGUMENT,
    /flag=bind/,
  ],
  [
    "an address with a port",
    makes({ parameters: { nvmeAddress: "10.0.0.1:4420" } }),
    INVALID_ARGUMENT,
    /without a port/,
  ],
  [
    "less than xfs needs",
    makes({ ...sized(1n, gibibyte / 4n), volumeCapabilities: [{ ...mount, mount: { fsType: "xfs" } }] }),
    OUT_OF_RANGE,
    /xfs needs 300 MiB/,
  ],
  ["an empty source", makes({ volumeContentSource: {} }), INVALID_ARGUMENT, /snapshot_id/],
  ["a source without an id", makes({ volumeContentSource: { volume: {} } }), INVALID_ARGUMENT, /source/],
  [
    "a volume that is not there",
    makes({ volumeContentSource: { volume: { volumeId: "pvc-1" } } }),
    NOT_FOUND,
    /volume=pvc-1/,
  ],
  [
    "a snapshot of no form",
    makes({ volumeContentSource: { snapshot: { snapshotId: "pvc-1" } } }),
    NOT_FOUND,
    /pvc-1/,
  ],
  [
    "the name of another volume",
    (stack) => create(stack, "pvc-held", sized(2n * gibibyte)),
    ALREADY_EXISTS,
    /./,
  ],
  ["growth beyond its limit", expands(3n * gibibyte, 2n * gibibyte), OUT_OF_RANGE, /limit/],
  ["growth beyond the pool", expands(9n << 40n), OUT_OF_RANGE, /storage-pool/],
  ["growth to nothing", expands(0n), INVALID_ARGUMENT, /./],
  ["growth of what is not there", expands(gibibyte, 0n, "pvc-none"), NOT_FOUND, /pvc-none/],
  ["a node that nobody knows", publishes("node-9"), NOT_FOUND, /node-9/],
  ["a publish of what is not there", publishes("node-1", "pvc-none"), NOT_FOUND, /pvc-none/],
  ["a publish of what another node holds", publishes("node-2"), FAILED_PRECONDITION, /node-1/],
  [
    "the deletion of what a node holds",
    ({ clients }, volumeId) => clients.controller.call("DeleteVolume", { volumeId }),
    FAILED_PRECONDITION,
    /node-1/,
  ],
  ["a snapshot without name", freezes({ name: "" }), INVALID_ARGUMENT, /name/],
  ["a snapshot of nothing", freezes({ sourceVolumeId: "" }), INVALID_ARGUMENT, /source_volume_id/],
  ["a snapshot of what is not there", freezes({ sourceVolumeId: "pvc-none" }), NOT_FOUND, /pvc-none/],
  ["a snapshot's unknown parameter", freezes({ parameters: { colour: "red" } }), INVALID_ARGUMENT, /colour/],
];

Deno.test("mistakes in requests are refused by their names, and change nothing on the router", async (t) => {
  await using stack = await startStack(growsOnline);
  const { controller } = stack.clients;
  const held = await create(stack, "pvc-held");
  await controller.call("ControllerPublishVolume", publishRequest(held));
  for (const [what, ask, code, text] of refusals) {
    await t.step(what, () => changesNothing(stack, () => rejectsWith(code, ask(stack, held), text)));
  }
  // Parameters that the sidecars add are accepted.
  const parameters = { "csi.storage.k8s.io/volumesnapshot/name": "snap" };
  await controller.call("CreateSnapshot", { name: "snap", sourceVolumeId: held, parameters });
  const { capacityBytes } = await controller.call("ControllerExpandVolume", {
    volumeId: held,
    ...sized(3n * gibibyte + 1n),
  });
  assert.equal(capacityBytes, String(3n * gibibyte + (1n << 20n)));
});

Deno.test("a volume id of another form is taken down already, INVALID_ARGUMENT for every other call, and nothing is sent", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const before = await stack.count();
  const takeDown = (volumeId: string) => [
    () => controller.call("DeleteVolume", { volumeId }),
    () => controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "" }),
    () => controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" }),
  ];
  for (const volumeId of ["../x", "a;b", "data_disk/7", "nas2/pvc_1", "x".repeat(200)]) {
    for (const ask of takeDown(volumeId)) assert.deepEqual(await ask(), {});
  }
  // Without a file of routers such an id may be one of a router that was taken out of it.
  for (const volumeId of ["", "nas2/pvc-1"]) {
    for (const ask of takeDown(volumeId)) await rejectsWith(INVALID_ARGUMENT, ask());
  }
  for (const volumeId of ["", "../x", "a;b", "data_disk/7"]) {
    const validate = { volumeId, volumeCapabilities: [mount] };
    const expand = { volumeId, ...sized(gibibyte) };
    for (
      const ask of [
        () => controller.call("ControllerPublishVolume", publishRequest(volumeId)),
        () => controller.call("ControllerExpandVolume", expand),
        () => controller.call("ControllerGetVolume", { volumeId }),
        () => controller.call("ControllerGetVolumeHealth", { volumeId }),
        () => controller.call("ValidateVolumeCapabilities", validate),
      ]
    ) await rejectsWith(INVALID_ARGUMENT, ask());
  }
  for (const sourceVolumeId of ["../x", "a;b", `snap-${"0".repeat(28)}`]) {
    await rejectsWith(NOT_FOUND, snapshot(stack, "snap", sourceVolumeId));
  }
  assert.deepEqual(await stack.count(), before);
});

Deno.test("ValidateVolumeCapabilities confirms what the volume can do and says why it cannot do the rest", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-validate");
  const validate = (volumeCapabilities: Sent<VolumeCapability>[], id = volumeId) =>
    controller.call("ValidateVolumeCapabilities", { volumeId: id, volumeCapabilities });
  assert.equal((await validate([mount])).confirmed?.volumeCapabilities.length, 1);
  const refused = await validate([block]);
  assert.deepEqual([refused.confirmed, /ext4/.test(refused.message)], [null, true]);
  await rejectsWith(INVALID_ARGUMENT, validate([]));
  await rejectsWith(NOT_FOUND, validate([mount], "pvc-none"));
});
