import assert from "node:assert/strict";
import { FakeSshTransport } from "../../../tests/fakes/ssh_transport.ts";
import { ConnectError, freshTransport, type SshTransport } from "./transport.ts";

const never = new AbortController().signal;

function isConnectError(message: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof ConnectError, String(error));
    assert.match(error.message, message);
    assert.equal(error.lasting, true);
    return true;
  };
}

Deno.test("freshTransport() reads the credentials again for each connection", async () => {
  const ways = [new FakeSshTransport(), new FakeSshTransport()];
  let opened = 0;
  const fresh = freshTransport("a@b:22", () => Promise.resolve(ways[opened++]!));
  await fresh.connect(never);
  await fresh.connect(never);
  assert.deepEqual(ways.map(({ attempts }) => attempts), [1, 1]);
});

Deno.test("freshTransport() uses nothing that it read before when a file can no longer be read", async () => {
  const way = new FakeSshTransport();
  let isThere = true;
  const open = () => isThere ? Promise.resolve(way) : Promise.reject(new Error("no such file"));
  const fresh = freshTransport("a@b:22", open);
  await fresh.connect(never);
  isThere = false;
  await assert.rejects(fresh.connect(never), isConnectError(/credentials cannot be used: no such file/));
  assert.equal(way.attempts, 1);
  isThere = true;
  await fresh.connect(never);
  assert.equal(way.attempts, 2);
});

Deno.test("freshTransport() ends an attempt whose file reads never end", async () => {
  const over = new AbortController();
  const fresh = freshTransport("a@b:22", () => Promise.withResolvers<SshTransport>().promise);
  const attempt = fresh.connect(over.signal);
  over.abort();
  await assert.rejects(attempt, isConnectError(/not read in time/));
});
