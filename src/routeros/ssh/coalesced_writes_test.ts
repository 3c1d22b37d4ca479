import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { coalesceWrites } from "./coalesced_writes.ts";

/** A socket that keeps what it is given. */
function fakeSocket() {
  const sent: string[] = [];
  const socket = {
    destroyed: false,
    takes: true,
    write(chunk: Uint8Array) {
      sent.push(Buffer.from(chunk).toString());
      return this.takes;
    },
    end() {
      sent.push("end");
      return this;
    },
  };
  coalesceWrites(socket as unknown as Socket);
  return { sent, socket };
}

Deno.test("coalesceWrites() sends what is written at once in one piece, in order, as it was then", async () => {
  const { sent, socket } = fakeSocket();
  const reused = Buffer.from("b");
  socket.write(Buffer.from("a"));
  socket.write(reused);
  reused.write("x");
  socket.write(Buffer.from("c"));
  assert.deepEqual(sent, []);
  await Promise.resolve();
  assert.deepEqual(sent, ["abc"]);
  socket.write(Buffer.from("d"));
  await Promise.resolve();
  assert.deepEqual(sent, ["abc", "d"]);
});

Deno.test("coalesceWrites() sends what was written before the end first, and nothing of a destroyed socket", async () => {
  const { sent, socket } = fakeSocket();
  socket.write(Buffer.from("a"));
  socket.end();
  await Promise.resolve();
  assert.deepEqual(sent, ["a", "end"]);
  const other = fakeSocket();
  other.socket.write(Buffer.from("a"));
  other.socket.destroyed = true;
  await Promise.resolve();
  assert.deepEqual(other.sent, []);
});

Deno.test("coalesceWrites() tells that the socket takes no more, from the piece after the one that filled it", async () => {
  const { socket } = fakeSocket();
  socket.takes = false;
  assert.equal(socket.write(Buffer.from("a")), true);
  await Promise.resolve();
  assert.equal(socket.write(Buffer.from("b")), false);
});
