import assert from "node:assert/strict";
import { connect, createServer, type Http2Session } from "node:http2";
import { setImmediate } from "node:timers";
import { Server } from "@grpc/grpc-js";
import { VolumeError } from "../../volume/errors.ts";
import { deferDestroy, guardClientSessions, guardSessions } from "./http2_guard.ts";
import { serverTest, TestBench } from "../../../tests/support/csi_server.ts";

Deno.test("deferDestroy() destroys a session a turn later, with the same arguments", async () => {
  const calls: unknown[][] = [];
  const session = {
    destroy(...args: unknown[]) {
      calls.push([this, ...args]);
    },
  } as unknown as Http2Session;
  deferDestroy(session);
  const error = new Error("gone");
  session.destroy(error, 8);
  await Promise.resolve();
  assert.deepEqual(calls, []);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(calls, [[session, error, 8]]);
});

Deno.test("guardSessions() throws internal when it finds no HTTP/2 server to guard", () => {
  for (const server of [new Server(), {} as Server, { http2Servers: [] } as unknown as Server]) {
    assert.throws(() => guardSessions(server), (error) => VolumeError.is(error, "internal"));
  }
});

serverTest("guardClientSessions() guards sessions of clients that are made later, once", async () => {
  guardClientSessions();
  guardClientSessions();
  const listener = createServer();
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = listener.address() as { port: number };
    const session = connect(`http://127.0.0.1:${port}`);
    await new Promise((resolve) => session.once("connect", resolve));
    session.destroy();
    assert.equal(session.destroyed, false);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(session.destroyed, true);
  } finally {
    await new Promise((resolve) => listener.close(resolve));
  }
});

for (const denoVersion of [Deno.version.deno, "2.7.11"]) {
  serverTest(
    `startServer() (Deno ${denoVersion}) outlives clients that say goodbye with a GOAWAY`,
    async () => {
      await using bench = await TestBench.make();
      const server = await bench.start({ denoVersion });
      const address = bench.dial(server);
      for (let i = 0; i < 100; i++) {
        const clients = bench.clientsAt(address);
        assert.equal((await clients.call("Identity/Probe")).code, "OK");
        clients.close();
      }
    },
  );
}
