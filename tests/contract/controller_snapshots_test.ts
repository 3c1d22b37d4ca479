// Snapshots and clones through gRPC: what they cost, what is listed, and what comes of them on routers of every kind.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { clusterHash } from "../../src/volume/model/ids.ts";
import {
  changesNothing,
  cloneOf,
  cost,
  create,
  createRequest,
  gibibyte,
  mount,
  publishRequest,
  rejectsWith,
  snapshot,
  state,
} from "../support/controller_calls.ts";
import { clusterId, type Stack, startStack } from "../support/stack.ts";

const twice = { capacityRange: { requiredBytes: String(2n * gibibyte) } };

async function subvolumes(stack: Stack): Promise<string[]> {
  return (await state(stack)).subvolumes.map(({ fullname }) => fullname).toSorted();
}

async function imageNames(stack: Stack): Promise<string[]> {
  return (await state(stack)).files.map(({ name }) => name).filter((name) => /\.(img|part)$/.test(name));
}

async function listed(stack: Stack, filter: { snapshotId?: string; sourceVolumeId?: string } = {}) {
  const { entries } = await stack.clients.controller.call("ListSnapshots", filter);
  return entries.map((entry) => entry.snapshot!);
}

Deno.test("every call about snapshots and clones costs no more router commands than its budget", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  await create(stack, "warm-up");
  const source = await create(stack, "pvc-source");
  let id = "";
  const make = async () => void (id = (await snapshot(stack, "snap-one", source)).snapshotId);
  // Of a volume that was never published the router looks whether that is still so, which leaves no room for reading back.
  assert.ok(await cost(stack, make) <= 4, "CreateSnapshot");
  assert.equal(await cost(stack, make), 1, "CreateSnapshot, repeated");
  assert.equal(await cost(stack, () => controller.call("ListSnapshots", {})), 1, "ListSnapshots");
  const get = () => controller.call("GetSnapshot", { snapshotId: id });
  assert.equal(await cost(stack, get), 1, "GetSnapshot");
  const from = { snapshotId: id };
  assert.ok(await cost(stack, () => cloneOf(stack, "pvc-restored", from)) <= 3, "CreateVolume of a snapshot");
  assert.equal(await cost(stack, () => cloneOf(stack, "pvc-restored", from)), 1, "CreateVolume, repeated");
  const clone = () => cloneOf(stack, "pvc-clone", { volumeId: source });
  assert.ok(await cost(stack, clone) <= 3, "CreateVolume of a volume");
  const grown = () => cloneOf(stack, "pvc-grown", from, twice);
  assert.ok(await cost(stack, grown) <= 4, "CreateVolume of a snapshot, larger");
  const remove = () => controller.call("DeleteSnapshot", { snapshotId: id });
  assert.ok(await cost(stack, remove) <= 2, "DeleteSnapshot");
  assert.equal(await cost(stack, remove), 1, "DeleteSnapshot, repeated");
  assert.ok(await cost(stack, () => controller.call("DeleteVolume", { volumeId: source })) <= 2, "Delete");
});

Deno.test("a filter that no snapshot can meet costs no command, and finds nothing", async () => {
  await using stack = await startStack();
  const source = await create(stack, "pvc-source");
  await snapshot(stack, "snap-one", source);
  for (const filter of [{ snapshotId: source }, { snapshotId: "no" }, { sourceVolumeId: "A/B" }]) {
    assert.equal(await cost(stack, async () => assert.deepEqual(await listed(stack, filter), [])), 0);
  }
});

Deno.test("a filter finds the snapshots of one volume, one snapshot, and none of another cluster", async () => {
  await using stack = await startStack();
  const other = await stack.another(["--cluster-id", "another cluster"]);
  const [one, two] = [await create(stack, "pvc-one"), await create(stack, "pvc-two")];
  const theirs = await snapshot(other, "snap", await create(other, "pvc-theirs"));
  const first = await snapshot(stack, "snap", one);
  const second = await snapshot(stack, "snap-2", one);
  const third = await snapshot(stack, "snap-3", two);
  assert.notEqual(first.snapshotId, theirs.snapshotId, "the same name in two clusters is no clash");
  const all = [first, second, third].toSorted((a, b) => a.snapshotId < b.snapshotId ? -1 : 1);
  assert.deepEqual(await listed(stack), all);
  assert.deepEqual(await listed(stack, { sourceVolumeId: one }), all.filter((x) => x.sourceVolumeId === one));
  assert.deepEqual(await listed(stack, { sourceVolumeId: "pvc-none" }), []);
  assert.deepEqual(await listed(stack, { snapshotId: third.snapshotId }), [third]);
  assert.deepEqual(await listed(stack, { snapshotId: third.snapshotId, sourceVolumeId: two }), [third]);
  assert.deepEqual(await listed(stack, { snapshotId: third.snapshotId, sourceVolumeId: one }), []);
  assert.deepEqual(await listed(stack, { snapshotId: theirs.snapshotId }), []);
  const get = (snapshotId: string) => stack.clients.controller.call("GetSnapshot", { snapshotId });
  assert.deepEqual((await get(third.snapshotId)).snapshot, third);
  for (const id of [theirs.snapshotId, `snap-${"0".repeat(28)}`, "none"]) {
    await rejectsWith(status.NOT_FOUND, get(id), /there is none/);
  }
  await changesNothing(stack, async () => {
    await stack.clients.controller.call("DeleteSnapshot", { snapshotId: theirs.snapshotId });
  });
});

Deno.test("ListSnapshots pages right, and stays right while snapshots come and go", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const names = seedSnapshots(stack, 1000);
  const seen: string[] = [];
  let startingToken = "";
  do {
    const page = await controller.call("ListSnapshots", { maxEntries: 199, startingToken });
    assert.ok(page.entries.length <= 199);
    seen.push(...page.entries.map((entry) => entry.snapshot!.snapshotId));
    startingToken = page.nextToken;
    if (seen.length !== 199) continue;
    // What was shown goes, the last one too; one comes before the cursor, and one behind it.
    for (const id of [seen[0]!, seen[198]!]) await controller.call("DeleteSnapshot", { snapshotId: id });
    seedSnapshot(stack, `snap-${"0".repeat(27)}1`);
    seedSnapshot(stack, `snap-${"f".repeat(28)}`);
  } while (startingToken !== "");
  assert.deepEqual(seen, seen.toSorted());
  assert.deepEqual(seen, [...names, `snap-${"f".repeat(28)}`]);
  const whole = await controller.call("ListSnapshots", {});
  assert.deepEqual([whole.entries.length, whole.nextToken], [1000, ""]);
  for (const token of ["x", "after:pvc-1", "after:snap-1", `after:snap-${"0".repeat(29)}`]) {
    await rejectsWith(status.ABORTED, controller.call("ListSnapshots", { startingToken: token }), /token/);
  }
  await rejectsWith(status.INVALID_ARGUMENT, controller.call("ListSnapshots", { maxEntries: -1 }));
});

/** Puts snapshots of this cluster onto the router, as plain files; gives their ids in order. */
function seedSnapshots(stack: Stack, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const hex = (BigInt(index + 1) * 0x9e3779b97f4a7c15f39cc0605ceden).toString(16).slice(-28);
    const id = `snap-${hex.padStart(28, "0")}`;
    seedSnapshot(stack, id);
    return id;
  }).toSorted();
}

function seedSnapshot({ simulator }: Stack, id: string): void {
  const { files } = simulator.model;
  const folder = "storage-pool/metal-csi";
  if (!files.isDirectory(folder)) files.makeDirectories(folder);
  files.create(`${folder}/${id}.pvc-1.tabcde.n.${clusterHash(clusterId)}.img`, gibibyte);
}

Deno.test("a snapshot is of one volume, whatever becomes of that; a name is of one snapshot", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  const before = Math.floor(Date.now() / 1000);
  const made = await snapshot(stack, "snap", source);
  assert.match(made.snapshotId, /^snap-[0-9a-f]{28}$/);
  assert.deepEqual([made.sourceVolumeId, made.readyToUse, made.sizeBytes], [source, true, String(gibibyte)]);
  assert.ok(Math.abs(Number(made.creationTime!.seconds) - before) <= 5);
  assert.deepEqual(await snapshot(stack, "snap", source), made);
  const other = await create(stack, "pvc-other");
  await rejectsWith(status.ALREADY_EXISTS, snapshot(stack, "snap", other), /another volume/);
  await controller.call("ControllerExpandVolume", { volumeId: source, ...twice });
  assert.deepEqual(await listed(stack), [made]);
  assert.equal((await snapshot(stack, "snap-larger", source)).sizeBytes, String(2n * gibibyte));
  await controller.call("DeleteVolume", { volumeId: source });
  assert.deepEqual(await snapshot(stack, "snap", source), made, "it is known without its source");
  const restored = await cloneOf(stack, "pvc-restored", { snapshotId: made.snapshotId });
  await controller.call("DeleteSnapshot", { snapshotId: made.snapshotId });
  const { volume } = await controller.call("ControllerGetVolume", { volumeId: restored });
  assert.equal(volume!.capacityBytes, String(gibibyte));
  await rejectsWith(status.NOT_FOUND, snapshot(stack, "snap", source), /there is none/);
});

Deno.test("CreateSnapshot refuses bad input, names it, and leaves nothing on the router", async (t) => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const sourceVolumeId = await create(stack, "pvc-source");
  const bad: readonly (readonly [string, Record<string, unknown>, status, RegExp])[] = [
    ["no name", { name: "" }, status.INVALID_ARGUMENT, /name/],
    ["a name of 129 bytes", { name: "n".repeat(129) }, status.INVALID_ARGUMENT, /too long/],
    ["a name with a newline", { name: "a\nb" }, status.INVALID_ARGUMENT, /control/],
    ["no volume", { sourceVolumeId: "" }, status.INVALID_ARGUMENT, /source_volume_id/],
    ["a volume that is not there", { sourceVolumeId: "pvc-none" }, status.NOT_FOUND, /pvc-none/],
    ["a volume of no form", { sourceVolumeId: "a;b" }, status.NOT_FOUND, /a;b/],
    ["a snapshot", { sourceVolumeId: `snap-${"0".repeat(28)}` }, status.NOT_FOUND, /snap-0/],
    ["an unknown parameter", { parameters: { colour: "red" } }, status.INVALID_ARGUMENT, /colour/],
  ];
  await changesNothing(stack, async () => {
    for (const [what, overrides, code, text] of bad) {
      const request = { name: "snap", sourceVolumeId, ...overrides };
      await t.step(what, () => rejectsWith(code, controller.call("CreateSnapshot", request), text));
    }
  });
  const parameters = { "csi.storage.k8s.io/volumesnapshot/name": "snap" };
  await controller.call("CreateSnapshot", { name: "snap", sourceVolumeId, parameters });
});

Deno.test("a clone says what it was made from, and may not be formatted if anything can be in it", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const mayFormat = async (volumeId: string) => {
    const { publishContext } = await controller.call("ControllerPublishVolume", publishRequest(volumeId));
    return publishContext["mayFormat"];
  };
  const source = await create(stack, "pvc-source");
  const blank = await snapshot(stack, "snap-blank", source);
  const volumeContentSource = { snapshot: { snapshotId: blank.snapshotId } };
  const request = createRequest("pvc-blank", { volumeContentSource });
  const { volume } = await controller.call("CreateVolume", request);
  assert.deepEqual(volume!.contentSource?.snapshot, volumeContentSource.snapshot);
  assert.equal(await mayFormat(volume!.volumeId), "true");
  assert.equal(await mayFormat(await cloneOf(stack, "pvc-blank-clone", { volumeId: source })), "true");
  assert.equal(await mayFormat(source), "true");
  const used = await snapshot(stack, "snap-used", source);
  assert.equal(await mayFormat(await cloneOf(stack, "pvc-used", { snapshotId: used.snapshotId })), "false");
  assert.equal(await mayFormat(await cloneOf(stack, "pvc-used-clone", { volumeId: source })), "false");
});

Deno.test("a clone is what was asked for or is not there: its size, its source, its kind", async (t) => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source", twice);
  const { snapshotId } = await snapshot(stack, "snap", source);
  const size = async (volumeId: string) =>
    (await controller.call("ControllerGetVolume", { volumeId })).volume!.capacityBytes;
  const open = await cloneOf(stack, "pvc-open", { snapshotId }, { capacityRange: null });
  assert.equal(await size(open), String(2n * gibibyte));
  const larger = { capacityRange: { requiredBytes: String(3n * gibibyte) } };
  assert.equal(await size(await cloneOf(stack, "pvc-larger", { snapshotId }, larger)), String(3n * gibibyte));
  const limit = { capacityRange: { limitBytes: String(gibibyte) } };
  await changesNothing(stack, async () => {
    await t.step(
      "smaller",
      () => rejectsWith(status.OUT_OF_RANGE, cloneOf(stack, "pvc-small", { snapshotId }, limit)),
    );
    await t.step("of another source", async () => {
      await rejectsWith(status.ALREADY_EXISTS, cloneOf(stack, "pvc-open", { volumeId: source }));
      await rejectsWith(status.ALREADY_EXISTS, create(stack, "pvc-open", twice));
      await rejectsWith(status.ALREADY_EXISTS, cloneOf(stack, "pvc-source", { snapshotId }, twice));
    });
    await t.step("beyond the pool", () =>
      rejectsWith(
        status.RESOURCE_EXHAUSTED,
        cloneOf(stack, "pvc-huge", { snapshotId }, { capacityRange: { requiredBytes: String(9n << 40n) } }),
      ));
  });
  await t.step(
    "a clone of itself is the volume that is there, and no clone",
    () => rejectsWith(status.ALREADY_EXISTS, cloneOf(stack, "pvc-source", { volumeId: source }, twice)),
  );
});

Deno.test("on a router that keeps what has snapshots the order is told, and nothing is touched until it is kept", async () => {
  const subvolumeParent = "held";
  await using stack = await startStack({
    simulator: { knobs: { subvolumeParent } },
    told: { subvolumeParent },
  });
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  const clone = await cloneOf(stack, "pvc-clone", { volumeId: source });
  const { snapshotId } = await snapshot(stack, "snap", source);
  const restored = await cloneOf(stack, "pvc-restored", { snapshotId });
  const removeVolume = (volumeId: string) => controller.call("DeleteVolume", { volumeId });
  const removeSnapshot = () => controller.call("DeleteSnapshot", { snapshotId });
  await changesNothing(stack, async () => {
    await rejectsWith(
      status.FAILED_PRECONDITION,
      removeVolume(source),
      new RegExp(`${snapshotId}.*${clone}`),
    );
    await rejectsWith(status.FAILED_PRECONDITION, removeSnapshot(), new RegExp(restored));
  });
  await removeVolume(restored);
  await removeSnapshot();
  await removeVolume(clone);
  await removeVolume(source);
  assert.deepEqual(await subvolumes(stack), ["metal-csi"]);
});

Deno.test("where that is not known of a router, a delete that it refuses is no delete, and works in the end", async () => {
  await using stack = await startStack({ simulator: { knobs: { subvolumeParent: "held" } } });
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source");
  const { snapshotId } = await snapshot(stack, "snap", source);
  const remove = () => controller.call("DeleteVolume", { volumeId: source });
  await rejectsWith(status.UNAVAILABLE, remove(), /still there/);
  await rejectsWith(status.UNAVAILABLE, remove(), /still there/);
  await rejectsWith(status.UNAVAILABLE, controller.call("ControllerGetVolume", { volumeId: source }));
  await controller.call("DeleteSnapshot", { snapshotId });
  await remove();
  assert.deepEqual(await subvolumes(stack), ["metal-csi"]);
});

const flat = { subvolumeNames: "flat" } as const;

Deno.test("where subvolumes are at the top only, volumes of a folder are files, and those of the pool are not", async () => {
  const basePaths = ["/storage-pool/metal-csi", "/storage-pool"];
  await using stack = await startStack({
    simulator: { knobs: flat, basePaths },
    told: { ...flat, copyReturns: "when-done" },
    flags: basePaths.flatMap((path) => ["--base-path", path]),
  });
  const inFolder = await create(stack, "pvc-folder");
  const atTop = await create(stack, "pvc-top", { parameters: { volumePath: "/storage-pool" } });
  const hash = clusterHash(clusterId);
  assert.deepEqual(await subvolumes(stack), ["metal-csi", `${atTop}.${hash}`]);
  await snapshot(stack, "snap-folder", inFolder);
  const top = await snapshot(stack, "snap-top", atTop);
  const clone = await cloneOf(stack, "pvc-clone", { volumeId: inFolder });
  // Over the folder's border the data of the one has to be copied.
  const moved = await cloneOf(stack, "pvc-moved", { snapshotId: top.snapshotId });
  const names = (await subvolumes(stack)).filter((name) => name.startsWith("snap-"));
  assert.deepEqual(names.map((name) => name.slice(0, top.snapshotId.length)), [top.snapshotId]);
  const images = (await imageNames(stack)).map((name) => name.replace(/snap-.*/, "a snapshot")).toSorted();
  assert.deepEqual(images.filter((name) => name.startsWith("storage-pool/metal-csi/")), [
    "storage-pool/metal-csi/a snapshot",
    ...[inFolder, clone, moved].toSorted().map((id) => `storage-pool/metal-csi/${id}.${hash}.img`),
  ]);
});

Deno.test("where subvolumes are at the top only and nobody says so, no volume is made, and the router is named", async () => {
  await using stack = await startStack({ simulator: { knobs: flat } });
  await rejectsWith(status.UNAVAILABLE, create(stack, "pvc-nested"), /the router answered/);
  assert.deepEqual((await state(stack)).disks.filter((disk) => disk.type === "file"), []);
});

Deno.test("a router that takes over no file makes no clone, and a delete removes what is left of it", async () => {
  await using stack = await startStack({ simulator: { knobs: { adopt: "refused" } } });
  const source = await create(stack, "pvc-source");
  const clone = () => cloneOf(stack, "pvc-clone", { volumeId: source });
  await rejectsWith(status.UNAVAILABLE, clone(), /the router answered/);
  await rejectsWith(status.UNAVAILABLE, clone(), /the router answered/);
  const left = (await subvolumes(stack)).find((name) => !name.includes(source) && name !== "metal-csi")!;
  const volumeId = left.replace(/^metal-csi\/|\..*$/g, "");
  await rejectsWith(status.UNAVAILABLE, stack.clients.controller.call("ControllerGetVolume", { volumeId }));
  await stack.clients.controller.call("DeleteVolume", { volumeId });
  assert.deepEqual(await subvolumes(stack), ["metal-csi", `metal-csi/${source}.${clusterHash(clusterId)}`]);
});

Deno.test("snapshots count: what they promise is not promised again", async () => {
  const sizeBytes = 10n * gibibyte;
  await using stack = await startStack({ simulator: { pools: [{ name: "storage-pool", sizeBytes }] } });
  const { controller } = stack.clients;
  const available = async () => (await controller.call("GetCapacity", {})).availableCapacity;
  const source = await create(stack, "pvc-source", {
    capacityRange: { requiredBytes: String(4n * gibibyte) },
  });
  assert.equal(await available(), String(6n * gibibyte));
  const { snapshotId } = await snapshot(stack, "snap", source);
  assert.equal(await available(), String(2n * gibibyte));
  await changesNothing(stack, async () => {
    await rejectsWith(status.RESOURCE_EXHAUSTED, snapshot(stack, "snap-2", source));
    const four = { capacityRange: { requiredBytes: String(4n * gibibyte) } };
    await rejectsWith(status.RESOURCE_EXHAUSTED, cloneOf(stack, "pvc-clone", { snapshotId }, four));
    await rejectsWith(status.RESOURCE_EXHAUSTED, cloneOf(stack, "pvc-clone", { volumeId: source }, four));
    const expand = { volumeId: source, capacityRange: { requiredBytes: String(7n * gibibyte) } };
    await rejectsWith(status.RESOURCE_EXHAUSTED, controller.call("ControllerExpandVolume", expand));
  });
  await controller.call("DeleteSnapshot", { snapshotId });
  assert.equal(await available(), String(6n * gibibyte));
  assert.equal(
    (await controller.call("GetCapacity", { volumeCapabilities: [mount] })).availableCapacity,
    String(6n * gibibyte),
  );
});

Deno.test("8 concurrent CreateSnapshot calls of one name make one snapshot, by two controllers too", async () => {
  await using stack = await startStack();
  const second = await stack.another();
  const source = await create(stack, "pvc-source");
  const results = await Promise.allSettled(
    Array.from({ length: 8 }, (_, index) => snapshot(index % 2 === 0 ? stack : second, "snap", source)),
  );
  const codes = results.flatMap((result) => result.status === "rejected" ? [result.reason.code] : []);
  assert.deepEqual(codes.filter((code) => code !== status.ABORTED), []);
  const made = await snapshot(stack, "snap", source);
  assert.deepEqual(await listed(stack), [made]);
  assert.equal((await subvolumes(stack)).filter((name) => name.includes("snap-")).length, 1);
});
