/**
 * What the bench of short connections measures: the Identity service on a unix socket, and nothing else.
 *
 * Usage: deno run … tests/bench/connections_server.ts <socket>. Prints its endpoint when it listens; ends with its
 * standard input.
 */
import { identityMethods } from "../../src/csi/services/identity.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { startServer } from "../../src/csi/server/server.ts";
import { systemClock } from "../../src/host/clock.ts";
import { systemRandom } from "../../src/host/random.ts";
import { createLogger, stderrSink } from "../../src/telemetry/log.ts";

const [endpoint = ""] = Deno.args;
const server = await startServer({
  endpoint,
  csi: loadCsi(),
  services: {
    identity: identityMethods({ driverName: "bench.rds-csi", vendorVersion: "0", controllerServed: false }),
  },
  clock: systemClock,
  random: systemRandom,
  log: createLogger({ clock: systemClock, sink: stderrSink() }),
});
await Deno.stdout.write(new TextEncoder().encode(`${server.address}\n`));
for await (const _chunk of Deno.stdin.readable);
await server.stop({ graceMs: 1_000 });
