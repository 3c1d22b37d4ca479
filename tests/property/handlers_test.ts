// The handlers of all services, without a socket: each answers every possible request, or refuses it for a reason of
// its own, and changes nothing that the request gives it no leave to.
import assert from "node:assert/strict";
import fc from "fast-check";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { inTime, testContext } from "../fakes/controller_deps.ts";
import { isLong } from "../support/long.ts";
import { requestsOf } from "./_messages.ts";
import { type Served, services } from "./_services.ts";

/** Requests for each of the 44 handlers: 100,000 in all in the long run. */
const runs = isLong ? 2_275 : 60;

for (const [name, [proto, start]] of Object.entries(services)) {
  Deno.test(`no request makes a handler fail with an unexpected error, or change more: ${name}`, async () => {
    const served = await start();
    const received = receiverOf(proto);
    const before = served.changes();
    const seed = Math.floor(Math.random() * 2 ** 31);
    const numRuns = runs * Object.keys(served.methods).length;
    for (const [method, message] of fc.sample(callsOf(proto, served), { numRuns, seed })) {
      const request = received(method, message);
      const misplaced = served.watch(request);
      const handled = served.methods[method]!.handler(request, testContext());
      const error = await inTime(served.clock, handled).catch((error) => error);
      const isProper = !(error instanceof Error) || VolumeError.is(error) && error.kind !== "internal";
      const shown = `seed ${seed}: ${method}(${JSON.stringify(request)})`;
      assert.ok(isProper, `${shown}: ${error instanceof Error ? error.stack : ""}`);
      assert.deepEqual(misplaced(), [], shown);
    }
    assert.ok(
      Object.keys(served.valid).length === 0 || served.changes() > before,
      "it never changed anything",
    );
  });
}

/** Calls of all methods in any order. */
function callsOf(proto: string, { methods, known, valid }: Served) {
  const requests = [...requestsOf(`csi.v1.${proto}`, known, valid)].filter(([name]) => name in methods);
  return fc.oneof(...requests.map(([name, request]) => request.map((message) => [name, message] as const)));
}

/** Returns a message as a server receives it. */
function receiverOf(proto: string): (method: string, message: object) => never {
  const definitions: Readonly<Record<string, unknown>> = loadCsi()[proto as "Node"];
  return (method, message) => {
    const { requestSerialize, requestDeserialize } = definitions[method] as {
      requestSerialize(message: object): Uint8Array;
      requestDeserialize(bytes: Uint8Array): never;
    };
    return requestDeserialize(requestSerialize(message));
  };
}
