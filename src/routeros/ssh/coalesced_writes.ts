import { Buffer } from "node:buffer";
import type { Socket } from "node:net";

/**
 * Lets a socket send in one piece what is written to it while one piece of code runs. The SSH library writes every packet in
 * three parts, and each write is a system call: together they took half of a command's processor time. (Corking a socket
 * does not help: Deno writes each part by itself all the same.)
 */
export function coalesceWrites(socket: Pick<Socket, "write" | "end" | "destroyed">): void {
  const write: (chunk: Uint8Array) => boolean = socket.write.bind(socket);
  const end: (...args: Parameters<Socket["end"]>) => Socket = socket.end.bind(socket);
  let waiting: Uint8Array[] = [];
  let takesMore = true;
  const flush = () => {
    const chunks = waiting;
    waiting = [];
    if (chunks.length === 0 || socket.destroyed) return;
    takesMore = write(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
  };
  socket.write = (chunk: string | Uint8Array) => {
    if (waiting.length === 0) queueMicrotask(flush);
    // The caller may use its memory again.
    waiting.push(Buffer.from(chunk as Uint8Array));
    return takesMore;
  };
  socket.end = (...args: unknown[]) => {
    flush();
    return end(...args as Parameters<Socket["end"]>);
  };
}
