import { createSocket } from "node:dgram";
import { once } from "node:events";

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
