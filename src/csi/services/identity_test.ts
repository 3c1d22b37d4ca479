import assert from "node:assert/strict";
import { VolumeError, type VolumeErrorKind } from "../../volume/errors.ts";
import type { CallContext } from "../../volume/ports/system.ts";
import { identityMethods, type IdentityOptions } from "./identity.ts";
import { serverTest, TestBench } from "../../../tests/support/csi_server.ts";

const CONTEXT: CallContext = { requestId: "r", signal: new AbortController().signal };

function identity(options: Partial<IdentityOptions> = {}) {
  return identityMethods({
    driverName: "rds.test",
    vendorVersion: "1.2.3",
    controllerServed: true,
    ...options,
  });
}

async function probe(methods: ReturnType<typeof identity>): Promise<boolean | undefined> {
  const response = await methods.Probe?.handler({}, CONTEXT);
  return response?.ready?.value;
}

Deno.test("GetPluginInfo returns the driver's name and version", async () => {
  const response = await identity().GetPluginInfo?.handler({}, CONTEXT);
  assert.deepEqual(response, { name: "rds.test", vendorVersion: "1.2.3" });
});

Deno.test("GetPluginCapabilities names the controller service only where it is served", async () => {
  const offline = { volumeExpansion: { type: "OFFLINE" } };
  const table = [
    [true, [{ service: { type: "CONTROLLER_SERVICE" } }, offline]],
    [false, [offline]],
  ] as const;
  for (const [controllerServed, capabilities] of table) {
    const response = await identity({ controllerServed }).GetPluginCapabilities?.handler({}, CONTEXT);
    assert.deepEqual(response, { capabilities });
  }
});

Deno.test("GetPluginCapabilities promises to grow volumes in use only where that is known", async () => {
  for (const [growsOnline, type] of [[true, "ONLINE"], [false, "OFFLINE"]] as const) {
    const methods = identity({ controllerServed: false, growsOnline });
    const response = await methods.GetPluginCapabilities?.handler({}, CONTEXT);
    assert.deepEqual(response, { capabilities: [{ volumeExpansion: { type } }] });
  }
});

Deno.test("Probe is ready at once if the driver needs nothing", async () => {
  assert.equal(await probe(identity()), true);
});

Deno.test("Probe says not ready until the first answer, and is ready forever after", async () => {
  let outcome: VolumeErrorKind | undefined = "unavailable";
  let asked = 0;
  const methods = identity({
    ready: () => {
      asked++;
      return outcome === undefined ? Promise.resolve() : Promise.reject(new VolumeError(outcome, "router"));
    },
  });
  assert.equal(await probe(methods), false);
  outcome = "deadline";
  assert.equal(await probe(methods), false);
  outcome = undefined;
  assert.equal(await probe(methods), true);
  for (const kind of ["unavailable", "precondition"] as const) {
    outcome = kind;
    assert.equal(await probe(methods), true, kind);
  }
  assert.equal(asked, 3);
});

Deno.test("Probe throws precondition with the message of what a person has to fix", async () => {
  for (const kind of ["precondition", "unsupported"] as const) {
    const methods = identity({
      ready: () => Promise.reject(new VolumeError(kind, "RouterOS 7.1 is too old")),
    });
    await assert.rejects(probe(methods), (error) => {
      assert.ok(VolumeError.is(error, "precondition"));
      assert.equal(error.message, "RouterOS 7.1 is too old");
      return true;
    });
  }
});

Deno.test("Probe does not hide a fault", async () => {
  await assert.rejects(probe(identity({ ready: () => Promise.reject(new TypeError("bug")) })), TypeError);
  const internal = identity({ ready: () => Promise.reject(new VolumeError("internal", "bug")) });
  await assert.rejects(probe(internal), (error) => VolumeError.is(error, "internal"));
});

Deno.test("two Identity services become ready independently", async () => {
  let up = true;
  const ready = () => up ? Promise.resolve() : Promise.reject(new VolumeError("unavailable", "router"));
  assert.equal(await probe(identity({ ready })), true);
  up = false;
  assert.equal(await probe(identity({ ready })), false);
});

serverTest("Identity answers over the wire", async () => {
  await using bench = await TestBench.make();
  const server = await bench.start({
    services: {
      identity: identity({ ready: () => Promise.reject(new VolumeError("precondition", "too old")) }),
    },
  });
  const clients = bench.clients(server);
  const info = await clients.call("Identity/GetPluginInfo");
  assert.deepEqual(info.response, { name: "rds.test", vendorVersion: "1.2.3", manifest: {} });
  const { response } = await clients.call("Identity/GetPluginCapabilities");
  assert.deepEqual(response, {
    capabilities: [
      { service: { type: "CONTROLLER_SERVICE" }, type: "service" },
      { volumeExpansion: { type: "OFFLINE" }, type: "volumeExpansion" },
    ],
  });
  const probed = await clients.call("Identity/Probe");
  assert.deepEqual([probed.code, probed.details], ["FAILED_PRECONDITION", "too old"]);
});
