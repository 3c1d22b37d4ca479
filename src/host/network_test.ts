import assert from "node:assert/strict";
import { createServer } from "node:net";
import { FakeClock } from "../../tests/fakes/clock.ts";
import { systemClock } from "./clock.ts";
import { systemNetwork } from "./network.ts";

const network = systemNetwork(systemClock);

async function withPort(test: (port: number) => Promise<void>): Promise<void> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  try {
    await test(address.port);
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

Deno.test("reach() distinguishes an open port from one on which nothing listens", async () => {
  let closed = 0;
  await withPort(async (port) => {
    closed = port;
    assert.equal((await network.reach("127.0.0.1", port, 5000)).state, "open");
  });
  assert.equal((await network.reach("127.0.0.1", closed, 5000)).state, "refused");
});

Deno.test("reach() gives up after its time", async () => {
  const clock = new FakeClock();
  // An address for documentation: nothing answers, with or without a route.
  const reaching = systemNetwork(clock).reach("192.0.2.1", 9, 5000);
  await clock.advance(5000);
  assert.notEqual((await reaching).state, "open");
});

Deno.test("resolve() returns an address unchanged, and fails for a name that does not exist", async () => {
  assert.deepEqual(await network.resolve("127.0.0.1"), ["127.0.0.1"]);
  await assert.rejects(network.resolve("does-not-exist.invalid"));
});
