import { Buffer } from "node:buffer";
import type { Socket } from "node:net";

/**
 * Lets a socket send what is written until the running code ends at once, and in order. ssh2 writes each packet in three
 * pieces: each would be a system call, and without Nagle's algorithm a segment for the router to read. `cork()` is no way, as
 * Deno sends the pieces one by one at its end.
 *
 * @param socket one that connects already: `connect()` would put its own `write()` back
 */
export function writeTogether(socket: Socket): void {
  const write: (bytes: Uint8Array) => boolean = socket.write.bind(socket);
  const end: () => Socket = socket.end.bind(socket);
  let pieces: Uint8Array[] = [];
  const flush = () => {
    const bytes = Buffer.concat(pieces);
    pieces = [];
    // The socket may have been destroyed or ended meanwhile.
    if (bytes.length > 0 && socket.writable) write(bytes);
  };
  socket.write = (piece: Uint8Array | string) => {
    if (pieces.length === 0) queueMicrotask(flush);
    pieces.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    return true;
  };
  socket.end = () => {
    flush();
    return end();
  };
}
