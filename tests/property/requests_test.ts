// Requests to a node that no client should send: each gets a valid CSI code in time.
import assert from "node:assert/strict";
import type { Buffer } from "node:buffer";
import { Client, credentials } from "@grpc/grpc-js";
import fc from "fast-check";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { isLong } from "../support/long.ts";
import { probeOnly, TestBench } from "../support/csi_server.ts";
import { answerMs, answerTo, damaged, properCodes } from "./_damage.ts";
import { requestsOf } from "./_messages.ts";
import { startNode } from "./_services.ts";

/** How many requests each method gets over the socket. */
const runs = isLong ? 1_000 : 30;

Deno.test("a request whose bytes are damaged gets a proper answer of a node, which goes on serving", async (test) => {
  await using parts = new AsyncDisposableStack();
  const { methods, clock, known, valid } = await startNode();
  const bench = parts.use(await TestBench.make());
  const server = await bench.start({
    endpoint: "tcp://127.0.0.1:0",
    services: { node: methods, ...probeOnly() },
  });
  // What the node waits for in the time of its own clock is there at once.
  const timer = setInterval(() => void clock.advance(1_000), 1);
  parts.defer(() => clearInterval(timer));
  const client = new Client(server.address.replace(/^tcp:\/\//, ""), credentials.createInsecure());
  parts.defer(() => client.close());
  const service = loadCsi().Node;
  for (const [name, request] of requestsOf("csi.v1.Node", known, valid)) {
    await test.step(name, async () => {
      const { path, requestSerialize } = service[name as keyof typeof service];
      const whole = request.map((message) => (requestSerialize as (message: object) => Buffer)(message));
      const seed = Math.floor(Math.random() * 2 ** 31);
      for (
        const [bytes, at, by] of fc.sample(fc.tuple(whole, fc.nat(), fc.nat(255)), { numRuns: runs, seed })
      ) {
        const code = await answerTo(client, path, damaged(bytes, at, by), answerMs);
        assert.ok(properCodes.includes(code), `${code} for ${name}, seed ${seed}`);
      }
    });
  }
  const clients = dial(loadCsi(), server.address, systemClock);
  parts.defer(() => clients.close());
  assert.ok((await clients.identity.call("Probe", {})).ready?.value);
});
