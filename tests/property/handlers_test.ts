// The handlers of all services, without a socket: each answers every possible request, or refuses it for a reason of
// its own.
import assert from "node:assert/strict";
import fc from "fast-check";
import { controllerMethods } from "../../src/csi/services/controller.ts";
import { nodeMethods } from "../../src/csi/services/node.ts";
import { Routers } from "../../src/csi/services/routers/routers.ts";
import type { ServiceMethods } from "../../src/csi/server/call.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { createVolume } from "../../src/controller/volumes/create.ts";
import { VolumeError } from "../../src/volume/errors.ts";
import { VolumeIdPrefix } from "../../src/volume/model/ids.ts";
import { aCreate, inTime, testContext, testController } from "../fakes/controller_deps.ts";
import type { FakeClock } from "../fakes/clock.ts";
import { FakeNode, publishContext, stagingPath, targetPath, volumeId } from "../fakes/node_deps.ts";
import { isLong } from "../support/long.ts";
import { requestsOf } from "./_messages.ts";

/** Requests for each of the 26 handlers: 100,000 in all in the long run. */
const runs = isLong ? 3_850 : 60;

/** One service, with texts that name its objects. */
interface Served {
  readonly methods: ServiceMethods;
  readonly clock: FakeClock;
  readonly known: readonly string[];
  /** Returns events that must never have happened. */
  readonly violations: () => readonly string[];
}

const services: Readonly<Record<"Controller" | "Node", () => Promise<Served>>> = {
  Controller: async () => {
    const { deps, store, clock } = testController();
    const { stored } = await createVolume(deps, aCreate("a"), testContext());
    const router = { name: "default", ids: VolumeIdPrefix.none, isDefault: true, deps, topology: {} };
    return {
      methods: controllerMethods(new Routers([router])) as ServiceMethods,
      clock,
      known: [stored.id, "a", "n1", "ext4", "SINGLE_NODE_WRITER"],
      violations: () => store.violations,
    };
  },
  Node: () => {
    const node = new FakeNode();
    return Promise.resolve({
      methods: nodeMethods(node.service) as ServiceMethods,
      clock: node.clock,
      known: [volumeId, stagingPath, targetPath, "ext4", ...Object.entries(publishContext()).flat()],
      violations: () => [],
    });
  },
};

for (const [service, start] of Object.entries(services)) {
  Deno.test(`no request makes a handler fail with an unexpected error: ${service}`, async (test) => {
    const served = await start();
    const definitions: Readonly<Record<string, unknown>> = loadCsi()[service as "Node"].service;
    for (const [name, request] of requestsOf(`csi.v1.${service}`, served.known)) {
      const method = served.methods[name];
      if (method === undefined) continue;
      await test.step(name, async () => {
        const { requestSerialize, requestDeserialize } = definitions[name] as {
          requestSerialize(message: object): Uint8Array;
          requestDeserialize(bytes: Uint8Array): never;
        };
        const seed = Math.floor(Math.random() * 2 ** 31);
        for (const message of fc.sample(request, { numRuns: runs, seed })) {
          const received = requestDeserialize(requestSerialize(message));
          const error = await inTime(served.clock, method.handler(received, testContext())).catch((error) =>
            error
          );
          const isProper = !(error instanceof Error) || VolumeError.is(error) && error.kind !== "internal";
          assert.ok(isProper, `seed ${seed}: ${error instanceof Error ? error.stack : ""}`);
        }
      });
    }
    assert.deepEqual(served.violations(), []);
  });
}
