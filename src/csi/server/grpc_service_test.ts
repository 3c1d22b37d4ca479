import assert from "node:assert/strict";
import type { MethodDefinition } from "@grpc/grpc-js";
import { systemClock } from "../../host/clock.ts";
import { createLogger } from "../../telemetry/log.ts";
import { withEncodingLog } from "./grpc_service.ts";
import { loadCsi } from "./proto.ts";

const log = createLogger({ clock: systemClock, level: "error", format: "json", sink: () => {} });

for (const count of [0, 1, 256, 257, 1000]) {
  Deno.test(`a list of ${count} volumes is encoded so that a client can read it`, () => {
    const service = loadCsi().Controller;
    const entries = Array.from({ length: count }, (_, index) => ({
      volume: { volumeId: `pvc-${index}`, capacityBytes: String(index) },
      status: { publishedNodeIds: index % 2 === 0 ? [] : ["node-1", "node-2"] },
    }));
    const given = { entries, nextToken: "after:pvc-1" };
    const encoded = withEncodingLog(service, log)["ListVolumes"] as MethodDefinition<unknown, unknown>;
    const read = (bytes: ReturnType<typeof encoded.responseSerialize>) => encoded.responseDeserialize(bytes);
    assert.deepEqual(
      read(encoded.responseSerialize(given)),
      read(service.ListVolumes.responseSerialize(given)),
    );
  });
}
