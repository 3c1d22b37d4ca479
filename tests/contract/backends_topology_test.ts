// Routers that only some nodes reach.
import assert from "node:assert/strict";
import { status } from "@grpc/grpc-js";
import { startBackends } from "../support/backends_stack.ts";
import { createRequest, rejectsWith } from "../support/controller_calls.ts";

const racks = [
  { name: "nas1", isDefault: true, lines: ["topology: {rack: a}"] },
  { name: "nas2", lines: ["topology: {rack: b}"] },
  { name: "nas3", lines: ["topology: {rack: b}"] },
];
const location = (rack: string) => ({ segments: { rack, host: "x" } });

Deno.test("a volume is made where it can be reached as required, preferred places first, and its answer names where it is reached", async () => {
  await using stack = await startBackends(racks);
  const { controller, identity } = stack.clients;
  const { capabilities } = await identity.call("GetPluginCapabilities", {});
  assert.ok(capabilities.some(({ service }) => service?.type === "VOLUME_ACCESSIBILITY_CONSTRAINTS"));
  const make = async (
    name: string,
    accessibilityRequirements: {
      requisite?: ReturnType<typeof location>[];
      preferred?: ReturnType<typeof location>[];
    },
    parameters: Record<string, string> = {},
  ) => {
    const request = { ...createRequest(name, { parameters }), accessibilityRequirements };
    const { volume } = await controller.call("CreateVolume", request);
    return [volume!.volumeId.includes("/") ? volume!.volumeId.split("/")[0] : "", volume!.accessibleTopology];
  };
  const [a, b] = [[{ segments: { rack: "a" } }], [{ segments: { rack: "b" } }]];
  assert.deepEqual(await make("pvc-1", { requisite: [location("b")] }), ["nas2", b]);
  assert.deepEqual(
    await make("pvc-2", { requisite: [location("a"), location("b")], preferred: [location("b")] }),
    [
      "nas2",
      b,
    ],
  );
  assert.deepEqual(await make("pvc-3", { requisite: [location("a"), location("b")] }), ["", a]);
  assert.deepEqual(await make("pvc-4", {}), ["", a]);
  assert.deepEqual(await make("pvc-5", { requisite: [location("b")] }, { backend: "nas3" }), ["nas3", b]);
  assert.deepEqual(await make("pvc-1", { requisite: [location("b")] }), ["nas2", b], "again the same");
  for (const [rack, parameters] of [["c", {}], ["a", { backend: "nas2" }]] as const) {
    await rejectsWith(
      status.RESOURCE_EXHAUSTED,
      make("pvc-6", { requisite: [location(rack)] }, parameters),
      /outside of the requested topology/,
    );
  }
  const free = async (rack: string, parameters: Record<string, string> = {}) =>
    (await controller.call("GetCapacity", { accessibleTopology: location(rack), parameters }))
      .availableCapacity;
  assert.equal(await free("c"), "0");
  assert.equal(await free("a", { backend: "nas2" }), "0");
  assert.ok(BigInt(await free("b")) > 0n);
});

Deno.test("without a topology no volume names one, and requirements have no effect", async () => {
  await using stack = await startBackends([{ name: "nas1", isDefault: true }, { name: "nas2" }]);
  const { controller, identity } = stack.clients;
  const { capabilities } = await identity.call("GetPluginCapabilities", {});
  assert.ok(!capabilities.some(({ service }) => service?.type === "VOLUME_ACCESSIBILITY_CONSTRAINTS"));
  const accessibilityRequirements = { requisite: [location("b")] };
  const { volume } = await controller.call("CreateVolume", {
    ...createRequest("pvc-1"),
    accessibilityRequirements,
  });
  assert.deepEqual([volume!.volumeId.includes("/"), volume!.accessibleTopology], [false, []]);
});
