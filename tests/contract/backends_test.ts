// One controller of several routers: whole lives of volumes, separate ids and NQNs, lists over all routers, and one
// frozen router.
import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import { type BackendsStack, routerState, slotsOf, startBackends } from "../support/backends_stack.ts";
import { createRequest, gibibyte, publishRequest, rejectsWith } from "../support/controller_calls.ts";
import { eventually } from "../support/eventually.ts";

const two = [{ name: "nas1", isDefault: true }, { name: "nas2" }];

type Creating = Parameters<typeof createRequest>[1];

async function create({ clients }: Pick<BackendsStack, "clients">, name: string, overrides: Creating = {}) {
  const { volume } = await clients.controller.call("CreateVolume", createRequest(name, overrides));
  return volume!;
}

const on = (backend: string): Creating => ({ parameters: { backend } });

async function idsOf({ clients }: Pick<BackendsStack, "clients">, maxEntries = 0): Promise<string[]> {
  const ids: string[] = [];
  let startingToken = "";
  do {
    const page = await clients.controller.call("ListVolumes", { maxEntries, startingToken });
    assert.ok(maxEntries === 0 || page.entries.length <= maxEntries);
    ids.push(...page.entries.map(({ volume }) => volume!.volumeId));
    startingToken = page.nextToken;
  } while (startingToken !== "");
  return ids;
}

Deno.test("a volume lives its whole life on each of two routers, with the same name on both", async () => {
  await using stack = await startBackends(two);
  const { controller } = stack.clients;
  const [one, other] = [await create(stack, "pvc-same"), await create(stack, "pvc-same", on("nas2"))];
  assert.equal(other.volumeId, `nas2/${one.volumeId}`);
  assert.deepEqual([one.volumeContext["backend"], other.volumeContext["backend"]], ["nas1", "nas2"]);
  for (const { volumeId } of [one, other]) {
    const twice = { volumeId, capacityRange: { requiredBytes: String(2n * gibibyte) } };
    assert.equal(
      (await controller.call("ControllerExpandVolume", twice)).capacityBytes,
      String(2n * gibibyte),
    );
  }
  const nqns = new Map<string, string>();
  for (const { volumeId, volumeContext } of [one, other]) {
    const request = { ...publishRequest(volumeId), volumeContext };
    const { publishContext } = await controller.call("ControllerPublishVolume", request);
    assert.deepEqual(
      (await controller.call("ControllerPublishVolume", request)).publishContext,
      publishContext,
    );
    nqns.set(volumeId, publishContext["nqn"]!);
    const { volume, status } = await controller.call("ControllerGetVolume", { volumeId });
    assert.deepEqual([volume!.volumeId, status!.publishedNodeIds], [volumeId, ["node-1"]]);
  }
  const slot = one.volumeId;
  assert.match(nqns.get(slot)!, new RegExp(`^nqn\\.2000-02\\.com\\.mikrotik:${slot}:1-[0-9a-f]{8}$`));
  assert.match(
    nqns.get(`nas2/${slot}`)!,
    new RegExp(`^nqn\\.2000-02\\.com\\.mikrotik:nas2:${slot}:1-[0-9a-f]{8}$`),
  );
  await controller.call("ControllerUnpublishVolume", { volumeId: slot, nodeId: "node-1" });
  assert.equal((await routerState(stack.simulators["nas1"]!)).exports.length, 0);
  assert.equal((await routerState(stack.simulators["nas2"]!)).exports.length, 1, "the other one goes on");
  await rejectsWith(
    status.FAILED_PRECONDITION,
    controller.call("DeleteVolume", { volumeId: `nas2/${slot}` }),
    /\(router nas2\)/,
  );
  await controller.call("DeleteVolume", { volumeId: slot });
  assert.deepEqual(await slotsOf(stack.simulators["nas1"]!), []);
  assert.deepEqual(await slotsOf(stack.simulators["nas2"]!), [slot]);
  await controller.call("ControllerUnpublishVolume", { volumeId: `nas2/${slot}`, nodeId: "" });
  await controller.call("DeleteVolume", { volumeId: `nas2/${slot}` });
  assert.deepEqual(await idsOf(stack), []);
});

Deno.test("snapshots, clones and restored volumes stay on the router of their source", async () => {
  await using stack = await startBackends(two);
  const { controller } = stack.clients;
  const source = await create(stack, "pvc-source", on("nas2"));
  const { snapshot } = await controller.call("CreateSnapshot", {
    name: "snap",
    sourceVolumeId: source.volumeId,
  });
  const { snapshotId, sourceVolumeId } = snapshot!;
  assert.match(snapshotId, /^nas2\/snap-[0-9a-f]{28}$/);
  assert.equal(sourceVolumeId, source.volumeId);
  const content = { volumeContentSource: { snapshot: { snapshotId } } };
  const restored = await create(stack, "pvc-restored", content);
  assert.ok(restored.volumeId.startsWith("nas2/"));
  assert.deepEqual(restored.contentSource?.snapshot, { snapshotId });
  const clone = await create(stack, "pvc-clone", { volumeContentSource: { volume: source }, ...on("nas2") });
  assert.equal(clone.contentSource?.volume?.volumeId, source.volumeId);
  for (const from of [content, { volumeContentSource: { volume: source } }]) {
    await rejectsWith(
      status.INVALID_ARGUMENT,
      create(stack, "pvc-across", { ...from, ...on("nas1") }),
      /another router: backend=nas1 .*on nas2/,
    );
  }
  const listed = async (filter: { snapshotId?: string; sourceVolumeId?: string }) =>
    (await controller.call("ListSnapshots", filter)).entries.map((entry) => entry.snapshot!.snapshotId);
  await create(stack, "pvc-source");
  assert.deepEqual(await listed({}), [snapshotId]);
  assert.deepEqual(await listed({ snapshotId }), [snapshotId]);
  assert.deepEqual(await listed({ sourceVolumeId: source.volumeId }), [snapshotId]);
  assert.deepEqual(await listed({ sourceVolumeId: source.volumeId.slice("nas2/".length) }), []);
  assert.deepEqual(await listed({ snapshotId, sourceVolumeId: "pvc-1" }), []);
  assert.equal((await controller.call("GetSnapshot", { snapshotId })).snapshot!.snapshotId, snapshotId);
  await controller.call("DeleteSnapshot", { snapshotId });
  assert.deepEqual(await listed({}), []);
});

Deno.test("every call refuses an id of no router, unless no volume can have it and there is nothing to take down, and changes nothing", async () => {
  await using stack = await startBackends(two);
  const { controller } = stack.clients;
  const { volumeId } = await create(stack, "pvc-mine");
  const before = await routerState(stack.simulators["nas1"]!);
  for (
    const [id, why] of [[`nas3/${volumeId}`, /no router of that name/], [
      `nas1/${volumeId}`,
      /have no prefix/,
    ]] as const
  ) {
    const calls = [
      controller.call("DeleteVolume", { volumeId: id }),
      controller.call("ControllerPublishVolume", publishRequest(id)),
      controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "" }),
      controller.call("ControllerExpandVolume", { volumeId: id, capacityRange: { requiredBytes: "1" } }),
      controller.call("ControllerGetVolume", { volumeId: id }),
      controller.call("CreateSnapshot", { name: "s", sourceVolumeId: id }),
      controller.call("DeleteSnapshot", { snapshotId: id }),
    ];
    await Promise.all(calls.map((call) => rejectsWith(status.FAILED_PRECONDITION, call, why)));
  }
  for (const volumeId of ["a/b/c", "/x", "NAS2/x", "nas3/X", "data_disk/7"]) {
    assert.deepEqual(await controller.call("DeleteVolume", { volumeId }), {});
    assert.deepEqual(await controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" }), {});
    await assert.rejects(controller.call("ControllerGetVolume", { volumeId }));
  }
  await rejectsWith(status.INVALID_ARGUMENT, controller.call("DeleteVolume", { volumeId: "" }));
  assert.deepEqual(await routerState(stack.simulators["nas1"]!), before);
});

Deno.test("without a default router a volume is made where its StorageClass says, and a bare id belongs to no router", async () => {
  await using stack = await startBackends([{ name: "nas1" }, { name: "nas2" }]);
  await rejectsWith(
    status.INVALID_ARGUMENT,
    create(stack, "pvc-a"),
    /set backend in the StorageClass.*nas1,nas2/,
  );
  await rejectsWith(
    status.INVALID_ARGUMENT,
    create(stack, "pvc-a", on("nas3")),
    /use one of routers=nas1,nas2/,
  );
  const { volumeId } = await create(stack, "pvc-a", on("nas1"));
  const bare = volumeId.slice("nas1/".length);
  const { controller } = stack.clients;
  await rejectsWith(
    status.FAILED_PRECONDITION,
    controller.call("DeleteVolume", { volumeId: bare }),
    /no prefix/,
  );
  assert.deepEqual(await idsOf(stack), [volumeId]);
});

Deno.test("a volume context of another router is refused; one from before the file is accepted", async () => {
  await using stack = await startBackends(two);
  const { volumeId } = await create(stack, "pvc-a");
  const publish = (volumeContext: Record<string, string>) =>
    stack.clients.controller.call("ControllerPublishVolume", { ...publishRequest(volumeId), volumeContext });
  await rejectsWith(
    status.INVALID_ARGUMENT,
    publish({ backend: "nas2" }),
    /its router differs from the id's/,
  );
  await publish({ backend: "default" });
});

Deno.test("lists go over all routers, in pages whose tokens stay right while volumes come and go", async () => {
  await using stack = await startBackends([...two, { name: "nas3" }]);
  const { controller } = stack.clients;
  const made: string[] = [];
  for (const backend of ["nas1", "nas2", "nas3"]) {
    if (backend === "nas2") continue; // A router without volumes does not end a list.
    for (const name of ["pvc-a", "pvc-b", "pvc-c"]) {
      made.push((await create(stack, name, on(backend))).volumeId);
    }
  }
  for (const size of [0, 1, 2, 3, 4, 6, 100]) {
    assert.deepEqual((await idsOf(stack, size)).toSorted(), made.toSorted(), `pages of ${size}`);
  }
  const first = await controller.call("ListVolumes", { maxEntries: 2 });
  const seen = first.entries.map(({ volume }) => volume!.volumeId);
  await controller.call("DeleteVolume", { volumeId: seen[1]! });
  const rest = await controller.call("ListVolumes", { startingToken: first.nextToken, maxEntries: 100 });
  assert.deepEqual(
    [...seen, ...rest.entries.map(({ volume }) => volume!.volumeId)].toSorted(),
    made.toSorted(),
  );
  for (const token of ["nas4/", "after:x y", "nas2/x", "x"]) {
    await rejectsWith(status.ABORTED, controller.call("ListVolumes", { startingToken: token }));
  }
  const capacity = async (backend: string) =>
    (await controller.call("GetCapacity", { parameters: { backend } })).availableCapacity;
  assert.equal((await controller.call("GetCapacity", {})).availableCapacity, await capacity("nas1"));
  await control(stack.simulators["nas3"]!, "PATCH /disks/storage-pool", { free: Number(2n * gibibyte) });
  assert.ok(BigInt(await capacity("nas3")) <= 2n * gibibyte);
  assert.ok(BigInt(await capacity("nas2")) > 2n * gibibyte);
});

Deno.test("a frozen router delays only its own calls, and a list without it fails", async () => {
  await using stack = await startBackends(two);
  const { controller, identity } = stack.clients;
  const calls = async () => {
    const began = performance.now();
    for (let i = 0; i < 5; i++) {
      const { volumeId } = await create(stack, `pvc-${i}-${began}`);
      await controller.call("ControllerPublishVolume", publishRequest(volumeId));
      await controller.call("ControllerUnpublishVolume", { volumeId, nodeId: "node-1" });
      await controller.call("DeleteVolume", { volumeId });
    }
    return performance.now() - began;
  };
  await create(stack, "pvc-frozen", on("nas2"));
  const defaults = Math.max(await calls(), await calls());
  await control(stack.simulators["nas2"]!, "POST /faults", { action: "hang", times: "always" });
  const hanging = Array.from({ length: 20 }, (_, i) => {
    const request = createRequest(`pvc-hangs-${i}`, on("nas2"));
    return rejectsWith(status.DEADLINE_EXCEEDED, controller.call("CreateVolume", request, 5_000));
  });
  const list = rejectsWith(status.DEADLINE_EXCEEDED, controller.call("ListVolumes", {}, 1_500));
  const frozen = await calls();
  assert.ok(frozen < 3 * defaults + 500, `${frozen} ms beside a frozen router, ${defaults} ms without one`);
  await list;
  assert.equal((await identity.call("Probe", {})).ready?.value, true);
  assert.deepEqual(
    (await controller.call("ControllerGetVolume", { volumeId: (await create(stack, "pvc-x")).volumeId }))
      .status,
    {
      publishedNodeIds: [],
    },
  );
  await Promise.all(hanging);
});

Deno.test("a controller is ready although a router was away when it started, but not when all are away", async () => {
  await using stack = await startBackends(two);
  await control(stack.simulators["nas2"]!, "POST /reboot", { downMs: 60_000 });
  const second = await stack.another();
  assert.equal((await second.clients.identity.call("Probe", {})).ready?.value, true);
  await rejectsWith(status.UNAVAILABLE, second.clients.controller.call("ListVolumes", {}), /nas2/);
  await create(second, "pvc-a");
  await control(stack.simulators["nas1"]!, "POST /reboot", { downMs: 60_000 });
  const third = await stack.another();
  assert.equal((await third.clients.identity.call("Probe", {})).ready?.value, false);
});

Deno.test("the status page shows each router with its own volumes, by their handles", async () => {
  await using stack = await startBackends(two);
  const ids = [(await create(stack, "pvc-a")).volumeId, (await create(stack, "pvc-a", on("nas2"))).volumeId];
  const read = async () =>
    (await (await fetch(`${stack.driver.metricsUrl}/status.json`)).json()).controller as {
      routers: { name: string; session: string }[];
      volumes: { items?: { id: string; router: string }[] } & { id: string; router: string }[];
    };
  await eventually(async () => JSON.stringify((await read()).volumes).includes("nas2/"));
  await eventually(async () => JSON.stringify((await read()).volumes).includes('"router":"nas1"'));
  const { routers, volumes } = await read();
  assert.deepEqual(routers.map(({ name, session }) => [name, session]), [["nas1", "ready"], [
    "nas2",
    "ready",
  ]]);
  for (const id of ids) assert.ok(JSON.stringify(volumes).includes(`"id":"${id}"`), id);
});

Deno.test("each router has its own series, and log lines name it", async () => {
  await using stack = await startBackends(two);
  await create(stack, "pvc-a", on("nas2"));
  await create(stack, "pvc-a");
  const text = await (await fetch(`${stack.driver.metricsUrl}/metrics`)).text();
  for (const name of ["nas1", "nas2"]) {
    assert.match(text, new RegExp(`^rds_csi_router_connected\\{backend="${name}"\\} 1$`, "m"));
    assert.match(
      text,
      new RegExp(`^rds_csi_router_commands_total\\{backend="${name}",kind="add",outcome="ended"\\} 1$`, "m"),
    );
    const lines = stack.log.filter((line) => line.includes("router connection: ready"));
    assert.ok(lines.some((line) => line.includes(`"backend":"${name}"`)), lines.join("\n"));
  }
});

Deno.test("two clusters on the same two routers see nothing of each other", async () => {
  await using stack = await startBackends(two);
  const other = await stack.another(["--cluster-id", "another cluster"]);
  const ids: string[] = [];
  for (const backend of ["nas1", "nas2"]) ids.push((await create(stack, "pvc-a", on(backend))).volumeId);
  const before = await Promise.all(Object.values(stack.simulators).map(routerState));
  assert.deepEqual(await idsOf(other), []);
  for (const volumeId of ids) {
    const calls = [
      () => other.clients.controller.call("ControllerPublishVolume", publishRequest(volumeId)),
      () => other.clients.controller.call("DeleteVolume", { volumeId }),
      () => create(other, "pvc-a", on(volumeId.startsWith("nas2/") ? "nas2" : "nas1")),
    ];
    for (const call of calls) await assert.rejects(call());
  }
  assert.deepEqual(await Promise.all(Object.values(stack.simulators).map(routerState)), before);
  await create(other, "pvc-b", on("nas2"));
  assert.deepEqual((await idsOf(stack)).toSorted(), ids.toSorted());
});

for (const address of ["127.0.0.1", "localhost"]) {
  Deno.test(`two names in the file for one machine, the second at ${address}, never promise the same room twice`, async () => {
    const pools = [{ name: "storage-pool", sizeBytes: 100n * gibibyte }];
    await using stack = await startBackends([
      {
        ...two[0]!,
        lines: ["basePaths: [/storage-pool/one]"],
        simulator: { pools, basePaths: ["/storage-pool"] },
      },
      { ...two[1]!, lines: ["basePaths: [/storage-pool/two]"], sameAs: "nas1", address },
    ]);
    const sized = (backend: string, gib: bigint): Creating => ({
      parameters: { backend },
      capacityRange: { requiredBytes: String(gib * gibibyte) },
    });
    await create(stack, "pvc-1", sized("nas1", 1n));
    await create(stack, "pvc-2", sized("nas2", 80n));
    await rejectsWith(status.RESOURCE_EXHAUSTED, create(stack, "pvc-3", sized("nas1", 30n)), /left on pool/);
  });
}
