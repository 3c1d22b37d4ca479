import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { type AddressInfo, createServer, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { writeTogether } from "./write_together.ts";

/**
 * Lets `use` write to a server; returns the data that the server has read when the socket has ended, and the number of
 * writes.
 */
async function sent(
  use: (socket: Socket) => void | Promise<void>,
  fence: () => string | undefined = () => undefined,
): Promise<[string, number]> {
  const read = Promise.withResolvers<string>();
  const server = createServer((connection) => void text(connection).then(read.resolve, read.reject));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const socket = new Socket();
    socket.on("error", read.reject);
    socket.connect((server.address() as AddressInfo).port, "127.0.0.1");
    let writes = 0;
    const write: (bytes: Uint8Array) => boolean = socket.write.bind(socket);
    socket.write = (bytes: Uint8Array | string) => {
      writes++;
      return write(bytes as Uint8Array);
    };
    writeTogether(socket, fence);
    await once(socket, "connect");
    await use(socket);
    return [await read.promise, writes];
  } finally {
    server.close();
    await once(server, "close");
  }
}

Deno.test("writeTogether() sends the pieces of one turn at once, and those of the next turn after them", async () => {
  const result = await sent(async (socket) => {
    for (const piece of ["length ", Buffer.from("body "), "tag "]) socket.write(piece);
    await new Promise((resolve) => setTimeout(resolve, 0));
    for (const piece of ["next ", "packet"]) socket.write(piece);
    await new Promise((resolve) => setTimeout(resolve, 0));
    socket.end();
  });
  assert.deepEqual(result, ["length body tag next packet", 2]);
});

Deno.test("writeTogether() sends what was written before the socket is ended", async () => {
  const result = await sent((socket) => {
    socket.write("good");
    socket.write("bye");
    socket.end();
  });
  assert.deepEqual(result, ["goodbye", 1]);
});

Deno.test("writeTogether() writes nothing to a socket that was destroyed in the same turn", async () => {
  const result = await sent((socket) => {
    socket.write("too late");
    socket.destroy();
  });
  assert.deepEqual(result, ["", 0]);
});

Deno.test("writeTogether() sends nothing that the fence forbids by the time it would be sent", async () => {
  let reason: string | undefined;
  let failure: Error | undefined;
  const result = await sent(async (socket) => {
    socket.removeAllListeners("error").on("error", (error) => failure = error);
    socket.write("allowed");
    await new Promise((resolve) => setTimeout(resolve, 0));
    socket.write("too late");
    reason = "another one leads";
  }, () => reason);
  assert.deepEqual([result, failure?.message], [["allowed", 1], "another one leads"]);
});
