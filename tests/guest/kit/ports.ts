import { createSocket } from "node:dgram";
import { once } from "node:events";

/** A TCP port of 127.0.0.1 that was free a moment ago. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}

/** UDP ports of 127.0.0.1 that were free a moment ago, all different. */
export async function freeDatagramPorts(count: number): Promise<number[]> {
  const sockets = Array.from({ length: count }, () => createSocket("udp4"));
  try {
    for (const socket of sockets) {
      socket.bind(0, "127.0.0.1");
      await once(socket, "listening");
    }
    return sockets.map((socket) => socket.address().port);
  } finally {
    for (const socket of sockets) socket.close();
  }
}
