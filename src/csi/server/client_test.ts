import assert from "node:assert/strict";
import { systemClock } from "../../host/clock.ts";
import { connect, probeOnly, serverTest, TestBench } from "../../../tests/support/csi_server.ts";
import { carryBothWays, close } from "../../../tests/support/carry.ts";
import { codeOf, dial } from "./client.ts";

serverTest("a call that was given up leaves its connection to no other call", async () => {
  await using bench = await TestBench.make();
  const server = await bench.start({ endpoint: "tcp://127.0.0.1:0", services: probeOnly() });
  // The first connection hangs for good.
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const carrying: Promise<void>[] = [];
  const accepting = (async () => {
    const [silent] = [await listener.accept()];
    bench.defer(() => close(silent));
    for await (const connection of listener) {
      const onward = await connect(server.address);
      bench.defer(() => [connection, onward].forEach(close));
      carrying.push(carryBothWays(connection, onward));
    }
  })();
  const { port } = listener.addr as Deno.NetAddr;
  const clients = dial(bench.csi, `tcp://127.0.0.1:${port}`, systemClock);
  try {
    const givenUp = await clients.identity.call("Probe", {}, 100).then(() => "OK", codeOf);
    assert.equal(givenUp, "DEADLINE_EXCEEDED");
    assert.deepEqual((await clients.identity.call("Probe", {}, 5000)).ready, { value: true });
  } finally {
    clients.close();
    close(listener);
  }
  await Promise.all([accepting, ...carrying]);
});
