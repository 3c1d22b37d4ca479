/**
 * Whether a driver's memory goes on growing: 100,000 calls of every kind that a cluster makes, on one connection, and then
 * 10,000 stages of file systems on loop devices, to the executable (if it is built, or to the sources), with samples of its
 * resident memory.
 *
 * Usage: deno run -A tests/bench/soak.ts [--calls 100000] [--stages 10000]
 *
 * Ends with 1 when the memory grows after the first 20,000 calls, or the first 2,000 stages.
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
import { Stages } from "./soak_stages.ts";
import { type Running, withStack } from "./stack.ts";

/** Lives that go on at the same time. */
const parallel = 8;
/** Volumes that are staged and unstaged at the same time. */
const stagedAtOnce = 4;

const options = parseArgs({
  args: Deno.args,
  options: {
    calls: { type: "string", default: "100000" },
    stages: { type: "string", default: "10000" },
  },
}).values;
const [calls, stages] = [Number(options.calls), Number(options.stages)];
const subject = await Deno.stat(binary).then(() => "binary" as const, () => "sources" as const);
let code = 0;
if (calls > 0) {
  const samples = await withStack(subject, { mode: "all" }, (running) => soak(running, calls));
  code = report(subject, samples, { limitBytes: 150e6, of: "call" });
}
if (stages > 0) {
  const samples = await withStack(subject, { mode: "all" }, (running) => soakStages(running, stages));
  const required = { limitBytes: 150e6, of: "stage", warmUp: 2_000, maxSlopeBytes: 400 };
  code ||= report(subject, samples, required);
}
Deno.exit(code);

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
      await Promise.all(Array.from({ length: parallel }, () => lives.run(() => lives.calls >= until)));
      await samples.take(lives.calls);
    }
    return samples.taken;
  } finally {
    clients.close();
  }
}

/** With the executable's own tools, on this machine's loop devices; without root there are no stages. */
async function soakStages({ address, folder, driver }: Running, stages: number): Promise<Sample[]> {
  const samples = new Samples(() => driver.residentBytes());
  if (await missingForNode(folder, "loop") !== undefined) {
    print("no stages: they need root");
    await samples.take(0);
    return samples.taken;
  }
  const clients = dial(loadCsi(), address, systemClock);
  try {
    const cycle = await Stages.open(clients, "bench-node", join(folder, "volumes"), stagedAtOnce);
    await samples.take(0);
    for (let until = stages / 40; until <= stages; until += stages / 40) {
      await cycle.run(until);
      await samples.take(cycle.stages);
    }
    return samples.taken;
  } finally {
    clients.close();
  }
}
