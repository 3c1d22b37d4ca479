import assert from "node:assert/strict";
import { codeOf } from "../../src/csi/server/client.ts";
import { block, create, mount, publishRequest } from "../support/controller_calls.ts";
import { startStack } from "../support/stack.ts";

const gibibyte = 1 << 30;
const headerBytes = 16 << 20;
const encrypted = { parameters: { encrypted: "true" } };

Deno.test("an encrypted volume has the size that was asked for, whoever asks, and its disk has room for the header", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  const request = {
    name: "a",
    capacityRange: { requiredBytes: String(gibibyte), limitBytes: String(gibibyte) },
    volumeCapabilities: [mount],
    ...encrypted,
  };
  for (let at = 0; at < 2; at++) {
    const { volume } = await controller.call("CreateVolume", request);
    assert.equal(volume!.capacityBytes, String(gibibyte));
    assert.equal(volume!.volumeContext["encrypted"], "true");
  }
  const { entries } = await controller.call("ListVolumes", {});
  assert.deepEqual(entries.map(({ volume }) => volume!.capacityBytes), [String(gibibyte)]);
  const [volumeId] = entries.map(({ volume }) => volume!.volumeId);
  const capacityRange = { requiredBytes: String(2 * gibibyte), limitBytes: String(2 * gibibyte) };
  const grown = await controller.call("ControllerExpandVolume", { volumeId, capacityRange });
  assert.equal(grown.capacityBytes, String(2 * gibibyte));
  const got = await controller.call("ControllerGetVolume", { volumeId });
  assert.equal(got.volume!.capacityBytes, String(2 * gibibyte));
  const [plain, cipher] = await Promise.all(
    [{}, encrypted].map((parameters) => controller.call("GetCapacity", parameters)),
  );
  assert.equal(Number(plain!.availableCapacity) - Number(cipher!.availableCapacity), headerBytes);
});

Deno.test("ControllerPublishVolume gives encrypted volumes under a key of their own, by their own context only", async () => {
  await using stack = await startStack();
  const { controller } = stack.clients;
  for (const capability of [mount, block]) {
    const volumeId = await create(stack, `of ${Object.keys(capability)[0]}`, {
      volumeCapabilities: [capability],
      ...encrypted,
    });
    const request = { ...publishRequest(volumeId, "node-1"), volumeCapability: capability };
    await assert.rejects(
      controller.call("ControllerPublishVolume", request),
      (error) => codeOf(error) === "INVALID_ARGUMENT",
    );
    const { publishContext } = await controller.call("ControllerPublishVolume", {
      ...request,
      volumeContext: { encrypted: "true" },
    });
    assert.match(publishContext["nqn"]!, new RegExp(`:${volumeId}:1-`));
    assert.deepEqual([publishContext["encrypted"], publishContext["nvme_nqn"]], ["true", undefined]);
    assert.equal(publishContext["mayFormat"], "true");
  }
});
