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
import { judge, type Sample } from "./growth.ts";
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
const verdict = judge(samples, { limitBytes: 150e6, of: "call" });
print(`${subject}: ${verdict.flat ? "flat" : "NOT FLAT"}: ${verdict.text}`);
if (options.json !== undefined) {
  await Deno.writeTextFile(options.json, `${JSON.stringify({ subject, samples, verdict }, null, 2)}\n`);
}
Deno.exit(verdict.flat ? 0 : 1);

async function soak({ address, folder, driver }: Running, calls: number): Promise<Sample[]> {
  const clients = dial(loadCsi(), address, systemClock);
  const withNode = await missingForNode(folder, "loop") === undefined;
  if (!withNode) print("only the controller's half: the node's needs root");
  const lives = new Lives({
    clients,
    nodeId: "bench-node",
    nodeFolder: withNode ? join(folder, "volumes") : undefined,
  });
  const startMs = systemClock.monotonicMs();
  const taken: Sample[] = [];
  const sample = async () => {
    const one = {
      done: lives.calls,
      rssBytes: await driver.residentBytes(),
      ms: systemClock.monotonicMs() - startMs,
    };
    taken.push(one);
    print(
      `${String(one.done).padStart(8)} ${(one.rssBytes / 1e6).toFixed(1).padStart(7)} MB ${
        (one.ms / 1e3).toFixed(1)
      } s`,
    );
  };
  try {
    await sample();
    for (let until = calls / 40; until <= calls; until += calls / 40) {
      await Promise.all(Array.from({ length: parallel }, () => lives.run(until)));
      await sample();
    }
    return taken;
  } finally {
    clients.close();
  }
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
