import assert from "node:assert/strict";
import { createServer, type Server, type Socket } from "node:net";
import { Arrivals, needsLegacyListener } from "./legacy_unix_listener.ts";
import { serverTest, TestBench } from "../../../tests/support/csi_server.ts";

Deno.test("needsLegacyListener() is true below 2.7.14", () => {
  const table: readonly [string, boolean][] = [
    ["1.46.3", true],
    ["2.0.0", true],
    ["2.7.11", true],
    ["2.7.13", true],
    ["2.7.14", false],
    ["2.7.14+abc1234", false],
    ["2.8.0", false],
    ["2.9.6", false],
    ["2.10.0-rc.1", false],
    ["3.0.0", false],
  ];
  for (const [version, expected] of table) assert.equal(needsLegacyListener(version), expected, version);
});

/** A listener on a loopback address, and a function to dial it from a chosen address. */
async function withListener(
  test: (arrivals: Arrivals, dial: () => Promise<Deno.TcpConn>, seen: () => number) => Promise<void>,
): Promise<void> {
  const arrivals = new Arrivals();
  let seen = 0;
  const listener: Server = createServer((socket: Socket) => {
    seen++;
    arrivals.add(socket);
  });
  const open: Deno.Conn[] = [];
  try {
    await new Promise<void>((resolve) => listener.listen({ host: "127.77.0.1", port: 0 }, resolve));
    const address = listener.address();
    assert.ok(address !== null && typeof address === "object");
    const dial = async () => {
      const connection = await Deno.connect({ hostname: "127.77.0.1", port: address.port });
      open.push(connection);
      return connection;
    };
    await test(arrivals, dial, () => seen);
  } finally {
    arrivals.giveUp();
    for (const connection of open) connection.close();
    await new Promise((resolve) => listener.close(resolve));
  }
}

serverTest(
  "Arrivals.from() gives the connection of the peer that is wanted and closes one that came before",
  async () => {
    await withListener(async (arrivals, dial) => {
      const intruder = await dial();
      const ours = await dial();
      const wanted = ours.localAddr as Deno.NetAddr;
      const accepted = await arrivals.from(wanted);
      assert.equal(accepted.remotePort, wanted.port);
      assert.equal(await intruder.read(new Uint8Array(1)), null);
      accepted.destroy();
    });
  },
);

serverTest("Arrivals.from() closes a connection that comes later", async () => {
  await withListener(async (arrivals, dial) => {
    const ours = await dial();
    const accepted = await arrivals.from(ours.localAddr as Deno.NetAddr);
    const intruder = await dial();
    assert.equal(await intruder.read(new Uint8Array(1)), null);
    assert.equal(accepted.destroyed, false);
    accepted.destroy();
  });
});

serverTest("Arrivals.from() does not accept a peer with the right port and another address", async () => {
  await withListener(async (arrivals, dial) => {
    const intruder = await dial();
    const { port } = intruder.localAddr as Deno.NetAddr;
    const result = arrivals.from({ transport: "tcp", hostname: "127.0.0.2", port });
    assert.equal(await intruder.read(new Uint8Array(1)), null);
    arrivals.giveUp();
    await assert.rejects(result, /not accepted in time/);
  });
});

serverTest("startServer() warns when it needs the fallback, and only then", async () => {
  for (const [denoVersion, expected] of [["2.7.11", 1], ["2.9.6", 0]] as const) {
    if (expected === 0 && needsLegacyListener(Deno.version.deno)) continue;
    await using bench = await TestBench.make();
    await bench.start({ denoVersion });
    assert.equal(bench.lines.filter((line) => line.level === "WARN").length, expected, denoVersion);
  }
});
