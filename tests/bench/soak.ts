/**
 * Whether a driver's memory goes on growing: 100,000 calls of every kind that a cluster makes, on one connection, to the
 * executable (if it is built, or to the sources), with samples of its resident memory.
 *
 * Usage: deno run -A tests/bench/soak.ts [--calls 100000] [--json FILE]
 *
 * Ends with 1 when the memory grows after the first 20,000 calls.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { missingForNode } from "../../src/cli/demo/scratch.ts";
import { dial } from "../../src/csi/server/client.ts";
import { loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { binary } from "../support/parts.ts";
import { print } from "../../tools/print.ts";
import { report, type Sample, Samples } from "./growth.ts";
import { Lives } from "./soak_lives.ts";
import { type Running, withStack } from "./stack.ts";

/** Lives that go on at the same time. */
const parallel = 8;

const options = parseArgs({
  args: Deno.args,
  options: { calls: { type: "string", default: "100000" }, json: { type: "string" } },
}).values;
const calls = Number(options.calls);
const subject = await Deno.stat(binary).then(() => "binary" as const, () => "sources" as const);
const samples = await withStack(subject, "all", 0, (running) => soak(running, calls));
Deno.exit(await report(subject, samples, { limitBytes: 150e6, of: "call" }, options.json));

async function soak({ address, folder, driver }: Running, calls: number): Promise<Sample[]> {
  const clients = dial(loadCsi(), address, systemClock);
  const withNode = await missingForNode(folder, "loop") === undefined;
  if (!withNode) print("only the controller's half: the node's needs root");
  const lives = new Lives({
    clients,
    nodeId: "bench-node",
    nodeFolder: withNode ? join(folder, "volumes") : undefined,
  });
  const samples = new Samples(() => driver.residentBytes());
  try {
    await samples.take(lives.calls);
    for (let until = calls / 40; until <= calls; until += calls / 40) {
      await Promise.all(Array.from({ length: parallel }, () => lives.run(until)));
      await samples.take(lives.calls);
    }
    return samples.taken;
  } finally {
    clients.close();
  }
}
