import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import type { CreateVolumeRequest } from "../../src/csi/generated/csi/v1/CreateVolumeRequest.ts";
import type { VolumeCapability } from "../../src/csi/generated/csi/v1/VolumeCapability.ts";
import {
  block,
  create,
  createRequest,
  gibibyte,
  mount,
  post,
  publishRequest,
  rejectsWith,
  state,
} from "../support/controller_calls.ts";
import { startStack } from "../support/stack.ts";

const noSnapshot = `snap-${"0".repeat(28)}`;

function fromVolume(volumeId: string): Partial<CreateVolumeRequest> {
  return { volumeContentSource: { volume: { volumeId } } };
}

function fromSnapshot(snapshotId: string): Partial<CreateVolumeRequest> {
  return { volumeContentSource: { snapshot: { snapshotId } } };
}

const badCreates: readonly [string, Partial<CreateVolumeRequest>, status, RegExp][] = [
  ["no name", { name: "" }, status.INVALID_ARGUMENT, /name/],
  ["a name of 129 bytes", { name: "n".repeat(129) }, status.INVALID_ARGUMENT, /too long/],
  ["a name with a newline", { name: "a\nb" }, status.INVALID_ARGUMENT, /control/],
  ["a name with NUL", { name: "a\0b" }, status.INVALID_ARGUMENT, /control/],
  ["no capability", { volumeCapabilities: [] }, status.INVALID_ARGUMENT, /volume_capabilities/],
  [
    "a capability without access",
    { volumeCapabilities: [{ accessMode: { mode: "SINGLE_NODE_WRITER" } }] },
    status.INVALID_ARGUMENT,
    /neither/,
  ],
  [
    "a capability without mode",
    { volumeCapabilities: [{ block: {} }] },
    status.INVALID_ARGUMENT,
    /access mode/,
  ],
  [
    "two writers on a file system",
    { volumeCapabilities: [{ mount: {}, accessMode: { mode: "MULTI_NODE_MULTI_WRITER" } }] },
    status.INVALID_ARGUMENT,
    /two nodes/,
  ],
  [
    "an unknown file system",
    { volumeCapabilities: [{ mount: { fsType: "ntfs" }, accessMode: { mode: "SINGLE_NODE_WRITER" } }] },
    status.INVALID_ARGUMENT,
    /ntfs/,
  ],
  ["mixed capabilities", { volumeCapabilities: [mount, block] }, status.INVALID_ARGUMENT, /different kinds/],
  ["a negative size", { capacityRange: { requiredBytes: "-5" } }, status.INVALID_ARGUMENT, /negative/],
  ["a negative limit", { capacityRange: { limitBytes: "-5" } }, status.INVALID_ARGUMENT, /negative/],
  [
    "a limit below",
    { capacityRange: { requiredBytes: String(2n * gibibyte), limitBytes: String(gibibyte) } },
    status.OUT_OF_RANGE,
    /limit/,
  ],
  [
    "a limit just above",
    { capacityRange: { requiredBytes: String(gibibyte + 1n), limitBytes: String(gibibyte + 2n) } },
    status.OUT_OF_RANGE,
    /MiB/,
  ],
  [
    "more than the pool",
    { capacityRange: { requiredBytes: String(9n << 40n) } },
    status.RESOURCE_EXHAUSTED,
    /storage-pool/,
  ],
  ["an unknown parameter", { parameters: { colour: "red" } }, status.INVALID_ARGUMENT, /colour/],
  [
    "the parameter __proto__",
    { parameters: JSON.parse('{"__proto__":"x"}') },
    status.INVALID_ARGUMENT,
    /__proto__/,
  ],
  ["port abc", { parameters: { nvmePort: "abc" } }, status.INVALID_ARGUMENT, /nvmePort/],
  ["port 0", { parameters: { nvmePort: "0" } }, status.INVALID_ARGUMENT, /nvmePort/],
  ["port 99999", { parameters: { nvmePort: "99999" } }, status.INVALID_ARGUMENT, /nvmePort/],
  [
    "a path with a space",
    { parameters: { volumePath: "/storage-pool/metal csi" } },
    status.INVALID_ARGUMENT,
    /volumePath/,
  ],
  [
    "a path that climbs",
    { parameters: { volumePath: "/storage-pool/metal-csi/../x" } },
    status.INVALID_ARGUMENT,
    /volumePath/,
  ],
  [
    "a path with ;",
    { parameters: { volumePath: "/storage-pool/metal-csi;x" } },
    status.INVALID_ARGUMENT,
    /volumePath/,
  ],
  [
    "a path outside",
    { parameters: { volumePath: "/storage-pool/other" } },
    status.INVALID_ARGUMENT,
    /--base-path/,
  ],
  [
    "a path that only looks inside",
    { parameters: { volumePath: "/storage-pool/metal-csi-2" } },
    status.INVALID_ARGUMENT,
    /--base-path/,
  ],
  ["a forcing mkfs option", { parameters: { mkfsOptions: "-F" } }, status.INVALID_ARGUMENT, /-F/],
  ["an mkfs option of xfs", { parameters: { mkfsOptions: "-d agcount=4" } }, status.INVALID_ARGUMENT, /-d/],
  ["another router", { parameters: { rdsAddress: "10.9.9.9" } }, status.INVALID_ARGUMENT, /--rds-address/],
  ["an empty source", { volumeContentSource: {} }, status.INVALID_ARGUMENT, /snapshot_id/],
  ["a source without an id", { volumeContentSource: { volume: {} } }, status.INVALID_ARGUMENT, /source/],
  ["a volume that is not there", fromVolume("pvc-1"), status.NOT_FOUND, /volume=pvc-1/],
  ["a volume of no form", fromVolume("a;b"), status.NOT_FOUND, /a;b/],
  ["a volume that is a snapshot", fromVolume(noSnapshot), status.NOT_FOUND, /snap-0/],
  ["a snapshot that is not there", fromSnapshot(noSnapshot), status.NOT_FOUND, /snapshot=snap-0/],
  ["a snapshot of no form", fromSnapshot("pvc-1"), status.NOT_FOUND, /pvc-1/],
];

Deno.test("CreateVolume refuses bad input, names it, and leaves nothing on the router", async (t) => {
  await using stack = await startStack();
  for (const [what, overrides, code, text] of badCreates) {
    await t.step(what, async () => {
      await rejectsWith(
        code,
        stack.clients.controller.call("CreateVolume", createRequest("pvc-bad", overrides)),
        text,
      );
    });
  }
  const { disks, files } = await state(stack);
  assert.deepEqual(disks.filter((disk) => disk.type === "file"), []);
  assert.deepEqual(files.filter((file) => file.name.endsWith(".img")), []);
});

const nastyNames = [
  "n".repeat(128),
  'say "hi"',
  "$name",
  "a;b",
  "a[b]c",
  "a{b}",
  "a\\b",
  "é".repeat(64),
  "'",
  "a b",
  "a/../b",
];

Deno.test("CreateVolume takes any printable name, and meets the same volume again", async (t) => {
  await using stack = await startStack();
  for (const name of nastyNames) {
    await t.step(JSON.stringify(name.slice(0, 20)), async () => {
      const id = await create(stack, name);
      assert.match(id, /^pvc-[0-9a-f]{28}$/);
      assert.equal(await create(stack, name), id);
    });
  }
  assert.deepEqual(await stack.violations(), []);
});

const sizes: readonly [string, { requiredBytes?: bigint; limitBytes?: bigint }, bigint][] = [
  ["none", {}, gibibyte],
  ["0", { requiredBytes: 0n }, gibibyte],
  ["1 byte", { requiredBytes: 1n }, gibibyte],
  ["1.5 TiB", { requiredBytes: 3n << 39n }, 3n << 39n],
  ["1900 MiB", { requiredBytes: 1900n << 20n }, 1900n << 20n],
  ["1 GiB + 1", { requiredBytes: gibibyte + 1n }, gibibyte + (1n << 20n)],
  ["a limit under 1 GiB", { limitBytes: (100n << 20n) + 5n }, 100n << 20n],
];

Deno.test("CreateVolume rounds sizes up to MiB and keeps their limits, on the router too", async (t) => {
  await using stack = await startStack();
  for (const [what, range, expected] of sizes) {
    await t.step(what, async () => {
      const capacityRange = Object.fromEntries(
        Object.entries(range).map(([key, value]) => [key, String(value)]),
      );
      const request = createRequest(`pvc-size-${what}`, { capacityRange });
      const { volume } = await stack.clients.controller.call("CreateVolume", request);
      assert.equal(volume!.capacityBytes, String(expected));
      const disk = (await state(stack)).disks.find((disk) => disk.slot === volume!.volumeId)!;
      assert.equal(String(disk["size"]), String(expected));
    });
  }
});

const differences: readonly [string, Partial<CreateVolumeRequest>][] = [
  ["a larger size", { capacityRange: { requiredBytes: String(2n * gibibyte) } }],
  ["a lower limit", { capacityRange: { limitBytes: String(512n << 20n) } }],
  ["block instead of a file system", { volumeCapabilities: [block] }],
  ["another file system", {
    volumeCapabilities: [{ mount: { fsType: "xfs" }, accessMode: { mode: "SINGLE_NODE_WRITER" } }],
  }],
  ["another mode", {
    volumeCapabilities: [{ mount: { fsType: "ext4" }, accessMode: { mode: "SINGLE_NODE_SINGLE_WRITER" } }],
  }],
  ["other parameters", { parameters: { fsckMode: "off" } }],
];

Deno.test("CreateVolume answers ALREADY_EXISTS when the name was used for something else", async (t) => {
  await using stack = await startStack();
  await create(stack, "pvc-different");
  for (const [what, overrides] of differences) {
    await t.step(what, async () => {
      const request = createRequest("pvc-different", overrides);
      await rejectsWith(status.ALREADY_EXISTS, stack.clients.controller.call("CreateVolume", request));
    });
  }
});

Deno.test("slots that are not this driver's are refused by every changing call, and nothing is changed", async (t) => {
  await using stack = await startStack();
  await post(stack, "/disks", {
    slot: "handmade",
    type: "file",
    "file-path": "/storage-pool/metal-csi/handmade.img",
    size: 1 << 30,
  });
  const other = await stack.another(["--cluster-id", "another cluster"]);
  const { volume } = await other.clients.controller.call("CreateVolume", createRequest("pvc-theirs"));
  await post(stack, "/disks", {
    slot: "damaged",
    type: "file",
    "file-path": "/storage-pool/metal-csi/damaged.img",
    size: 1 << 30,
    comment: "{rds1 c=00000000 n=000000000000 x=00000000}",
  });
  const before = await state(stack);
  const { controller } = stack.clients;
  for (const volumeId of ["storage-pool", "nvme1", "handmade", "damaged", volume!.volumeId]) {
    await t.step(volumeId, async () => {
      const expand = { volumeId, capacityRange: { requiredBytes: String(9n * gibibyte) } };
      await rejectsWith(status.FAILED_PRECONDITION, controller.call("DeleteVolume", { volumeId }));
      await rejectsWith(
        status.FAILED_PRECONDITION,
        controller.call("ControllerPublishVolume", publishRequest(volumeId)),
      );
      const unpublish = controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
      // Somebody's disk that is not exported is had by nobody: a VolumeAttachment that was refused must be able to go.
      if (volumeId === "handmade") await unpublish;
      else await rejectsWith(status.FAILED_PRECONDITION, unpublish);
      await rejectsWith(status.FAILED_PRECONDITION, controller.call("ControllerExpandVolume", expand));
      const snapshot = { sourceVolumeId: volumeId, name: "snap" };
      await rejectsWith(status.FAILED_PRECONDITION, controller.call("CreateSnapshot", snapshot));
      const clone = createRequest("clone", { volumeContentSource: { volume: { volumeId } } });
      await rejectsWith(status.FAILED_PRECONDITION, controller.call("CreateVolume", clone));
      // It is no snapshot's id, so that there is nothing to delete.
      await controller.call("DeleteSnapshot", { snapshotId: volumeId });
    });
  }
  const after = await state(stack);
  assert.deepEqual([after.disks, after.files], [before.disks, before.files]);
  const listed = await controller.call("ListVolumes", {});
  assert.deepEqual(listed.entries, []);
});

const badIds = ["", "Storage", "../x", "a b", "a;b", "x".repeat(33), 'a"b', "a\nb", "snap:1", "-a"];

Deno.test("a volume id of another form is INVALID_ARGUMENT for every call, and nothing is sent", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const before = await stack.count();
  for (const volumeId of badIds) {
    const expand = { volumeId, capacityRange: { requiredBytes: String(gibibyte) } };
    await rejectsWith(status.INVALID_ARGUMENT, controller.call("DeleteVolume", { volumeId }));
    await rejectsWith(
      status.INVALID_ARGUMENT,
      controller.call("ControllerPublishVolume", publishRequest(volumeId)),
    );
    await rejectsWith(
      status.INVALID_ARGUMENT,
      controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "" }),
    );
    await rejectsWith(status.INVALID_ARGUMENT, controller.call("ControllerExpandVolume", expand));
    await rejectsWith(status.INVALID_ARGUMENT, controller.call("ControllerGetVolume", { volumeId }));
    await rejectsWith(status.INVALID_ARGUMENT, controller.call("ControllerGetVolumeHealth", { volumeId }));
    const validate = { volumeId, volumeCapabilities: [mount] };
    await rejectsWith(status.INVALID_ARGUMENT, controller.call("ValidateVolumeCapabilities", validate));
  }
  assert.deepEqual(await stack.count(), before);
});

Deno.test("expand grows, never shrinks, and keeps its limit", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const id = await create(stack, "pvc-expand");
  const expand = (requiredBytes: bigint, limitBytes = 0n) =>
    controller.call("ControllerExpandVolume", {
      volumeId: id,
      capacityRange: { requiredBytes: String(requiredBytes), limitBytes: String(limitBytes) },
    });
  assert.equal((await expand(3n * gibibyte + 1n)).capacityBytes, String(3n * gibibyte + (1n << 20n)));
  const shrunk = await expand(gibibyte);
  assert.deepEqual([shrunk.capacityBytes, shrunk.nodeExpansionRequired], [
    String(3n * gibibyte + (1n << 20n)),
    true,
  ]);
  await rejectsWith(status.OUT_OF_RANGE, expand(gibibyte, 2n * gibibyte));
  await rejectsWith(status.RESOURCE_EXHAUSTED, expand(9n << 40n));
  await rejectsWith(status.INVALID_ARGUMENT, expand(0n));
  const missing = { volumeId: "pvc-none", capacityRange: { requiredBytes: String(gibibyte) } };
  await rejectsWith(status.NOT_FOUND, controller.call("ControllerExpandVolume", missing));
});

Deno.test("a holder that asks in another way gets ALREADY_EXISTS, and reader-only publishes say readonly", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const readers: VolumeCapability = {
    mount: { fsType: "ext4" },
    accessMode: { mode: "MULTI_NODE_READER_ONLY" },
  };
  const id = await create(stack, "pvc-ways");
  await controller.call("ControllerPublishVolume", publishRequest(id));
  const readOnly = { ...publishRequest(id), readonly: true };
  await rejectsWith(status.ALREADY_EXISTS, controller.call("ControllerPublishVolume", readOnly));
  await rejectsWith(
    status.INVALID_ARGUMENT,
    controller.call("ControllerPublishVolume", publishRequest(id, "node-1", block)),
  );
  await controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-1" });
  for (const node of ["node-1", "node-2", "node-3"]) {
    const { publishContext } = await controller.call(
      "ControllerPublishVolume",
      publishRequest(id, node, readers),
    );
    assert.deepEqual([publishContext["readonly"], publishContext["mayFormat"]], ["true", "false"]);
  }
});

Deno.test("ValidateVolumeCapabilities confirms what the volume can do and says why it cannot do the rest", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const id = await create(stack, "pvc-validate");
  const validate = (volumeCapabilities: VolumeCapability[]) =>
    controller.call("ValidateVolumeCapabilities", { volumeId: id, volumeCapabilities });
  assert.equal((await validate([mount])).confirmed?.volumeCapabilities.length, 1);
  const refused = await validate([block]);
  assert.equal(refused.confirmed, null);
  assert.match(refused.message, /ext4/);
  await rejectsWith(status.INVALID_ARGUMENT, validate([]));
  const missing = { volumeId: "pvc-none", volumeCapabilities: [mount] };
  await rejectsWith(status.NOT_FOUND, controller.call("ValidateVolumeCapabilities", missing));
});
