import { Buffer } from "node:buffer";
import type { Socket } from "node:net";

/**
 * Makes a socket send everything that is written before the running code ends at once, and in order. ssh2 writes each
 * packet in three pieces: each would be a system call, and without Nagle's algorithm a separate segment. `cork()` does
 * not help, because Deno sends the pieces one by one when it ends.
 *
 * A process may have been suspended since it wrote them. So the fence is asked right before they are sent, and a socket
 * that may not send is destroyed instead.
 *
 * @param socket a socket on which `connect()` was called already: `connect()` would restore its own `write()`
 * @param fence why nothing may be sent now; undefined while sending is allowed
 */
export function writeTogether(socket: Socket, fence: () => string | undefined): void {
  const write: (bytes: Uint8Array) => boolean = socket.write.bind(socket);
  const end: () => Socket = socket.end.bind(socket);
  let pieces: Uint8Array[] = [];
  const flush = () => {
    const bytes = Buffer.concat(pieces);
    pieces = [];
    // The socket may have been destroyed or ended meanwhile.
    if (bytes.length === 0 || !socket.writable) return;
    const reason = fence();
    if (reason === undefined) write(bytes);
    else socket.destroy(new Error(reason));
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
