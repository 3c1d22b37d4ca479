import assert from "node:assert/strict";
import { RecordedEvents } from "../../tests/fakes/node_events.ts";
import { readServeConfig } from "../config.ts";
import { systemClock } from "../host/clock.ts";
import { systemRandom } from "../host/random.ts";
import { openNode } from "./node.ts";

Deno.test("openNode() waits until an earlier process has let go of the node's state", async () => {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-test-" });
  const flags = ["--mode", "node", "--node-id", "n1", "--endpoint", `unix://${folder}/csi.sock`];
  const loop = ["--connector", "loop", "--loop-backing", folder, "--state-dir", `${folder}/state`];
  const config = readServeConfig([...flags, ...loop], () => undefined).node!;
  const log = { info: () => {}, warn: () => {} };
  const { promise: waiting, resolve: waits } = Promise.withResolvers<void>();
  const clock = {
    ...systemClock,
    sleep(ms: number, signal?: AbortSignal) {
      waits();
      return systemClock.sleep(ms, signal);
    },
  };
  const open = () => openNode(config, { clock, random: systemRandom, log, events: new RecordedEvents() });
  try {
    const earlier = await open();
    const order: string[] = [];
    const later = open().then((node) => {
      order.push("taken");
      return node;
    });
    await earlier.close();
    await waiting;
    order.push("let go");
    earlier.letGo();
    (await later).letGo();
    assert.deepEqual(order, ["let go", "taken"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
