import assert from "node:assert/strict";
import { control } from "../support/control_port.ts";
import { status } from "@grpc/grpc-js";
import {
  cost,
  create,
  gibibyte,
  mount,
  publishRequest,
  rejectsWith,
  seedVolumes,
  state,
} from "../support/controller_calls.ts";
import { growsOnline, startStack } from "../support/stack.ts";

Deno.test("a look at a volume, at what it can do and at the room costs one router command each", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const volumeId = await create(stack, "pvc-one");
  const validate = { volumeId, volumeCapabilities: [mount] };
  assert.equal(await cost(stack, () => controller.call("ControllerGetVolume", { volumeId })), 1);
  assert.equal(await cost(stack, () => controller.call("ValidateVolumeCapabilities", validate)), 1);
  assert.equal(await cost(stack, () => controller.call("GetCapacity", {})), 1);
});

Deno.test("8 creates of one name at once, by two controllers, make one volume; the others answer the same or ABORTED", async () => {
  await using stack = await startStack();
  const second = await stack.another();
  const results = await Promise.allSettled(
    Array.from({ length: 8 }, (_, index) => create(index % 2 === 0 ? stack : second, "pvc-same")),
  );
  const ids = results.flatMap((result) => result.status === "fulfilled" ? [result.value] : []);
  const codes = results.flatMap((result) => result.status === "rejected" ? [result.reason.code] : []);
  assert.equal(new Set(ids).size, 1);
  assert.deepEqual(codes.filter((code) => code !== status.ABORTED), []);
  assert.deepEqual((await state(stack)).disks.filter(({ type }) => type === "file").map(({ slot }) => slot), [
    ids[0],
  ]);
});
Deno.test("ListVolumes over 5,000 volumes is one command, pages right, and stays right while volumes come and go", async () => {
  await using stack = await startStack();
  seedVolumes(stack, 5000);
  const { controller } = stack.clients;
  let entries: string[] = [];
  assert.equal(
    await cost(stack, async () => {
      entries = (await controller.call("ListVolumes", {})).entries.map((entry) => entry.volume!.volumeId);
    }),
    1,
  );
  assert.equal(entries.length, 5000);
  assert.deepEqual(entries, entries.toSorted());
  const seen: string[] = [];
  let startingToken = "";
  do {
    const page = await controller.call("ListVolumes", { maxEntries: 1999, startingToken });
    seen.push(...page.entries.map((entry) => entry.volume!.volumeId));
    startingToken = page.nextToken;
    // One volume is made before the cursor and one behind it is deleted. The other entries must not be affected.
    if (seen.length === 1999) await create(stack, "pvc-newcomer", { parameters: {} });
  } while (startingToken !== "");
  assert.deepEqual([...new Set(seen)].filter((id) => entries.includes(id)).length, 5000);
  assert.equal(new Set(seen).size, seen.length);
  await rejectsWith(status.ABORTED, controller.call("ListVolumes", { startingToken: "pvc-1" }));
});
Deno.test("the longest folder, node id and NQN prefix keep every call within its budget", async () => {
  const basePath = "/storage-pool/" + "f".repeat(50);
  const nodeId = "n".repeat(64);
  const flags = ["--base-path", basePath, "--known-node", nodeId];
  await using stack = await startStack({
    flags: [...flags, "--nqn-prefix", "nqn.2000-02.com." + "p".repeat(144)],
    ...growsOnline,
    simulator: { ...growsOnline.simulator, basePaths: [basePath] },
  });
  const { controller } = stack.clients;
  const within = async (most: number, what: string, work: () => Promise<unknown>) => {
    assert.ok(await cost(stack, work) <= most, what);
  };
  let id = "";
  // The first create also makes the folder, which leaves no room in the command for reading back.
  await within(3, "CreateVolume, the first", async () => void await create(stack, "first"));
  await within(2, "CreateVolume", async () => id = await create(stack, "x".repeat(128)));
  const publish = () => controller.call("ControllerPublishVolume", publishRequest(id, nodeId));
  await within(2, "Publish", publish);
  await control(stack.simulator, `PATCH /disks/${id}`, { "nvme-tcp-export": false });
  await within(2, "Publish, re-asserted", publish);
  const expand = { volumeId: id, capacityRange: { requiredBytes: String(2n * gibibyte) } };
  await within(2, "Expand", () => controller.call("ControllerExpandVolume", expand));
  await within(2, "Unpublish", () => controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId }));
  await within(2, "Delete", () => controller.call("DeleteVolume", { volumeId: id }));
  assert.deepEqual(await stack.violations(), []);
});

Deno.test("a publish that was given up does not undo a later unpublish", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const id = await create(stack, "pvc-late");
  await control(stack.simulator, "POST /faults", {
    match: "/disk set",
    nth: 1,
    times: 1,
    action: "delay",
    value: 600,
  });
  await rejectsWith(
    status.DEADLINE_EXCEEDED,
    controller.call("ControllerPublishVolume", publishRequest(id), 200),
  );
  const unpublish = () =>
    controller.call("ControllerUnpublishVolume", { volumeId: id, nodeId: "node-1" })
      .then(() => true, (error: { code: number }) => {
        if (error.code !== status.ABORTED) throw error;
        return false;
      });
  for (let tries = 0; !await unpublish(); tries++) {
    assert.ok(tries < 40, "the lock of a call that was given up is let go");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await new Promise((resolve) => setTimeout(resolve, 800));
  const disk = (await state(stack)).disks.find(({ slot }) => slot === id);
  assert.equal(disk?.["nvme-tcp-export"], false);
  await controller.call("ControllerPublishVolume", publishRequest(id, "node-2"));
});
