/**
 * How much memory short connections cost, for the kubelet and the sidecars dial anew for every call: serves Identity
 * from a process of its own, dials, calls and hangs up again and again, and samples the server's resident memory.
 *
 * Usage: deno run -A tests/bench/connections.ts [--connections 100000] [--every 5000] [--json FILE]
 *
 * Ends with 1 when the memory goes on growing after the first 20,000 connections, or is above 110 MB.
 */
import { parseArgs } from "node:util";
import { dial } from "../../src/csi/server/client.ts";
import { type CsiPackage, loadCsi } from "../../src/csi/server/proto.ts";
import { systemClock } from "../../src/host/clock.ts";
import { v8Flags } from "../../tools/v8_flags.ts";
import { residentBytes } from "../support/parts.ts";
import { report, type Sample, Samples } from "./growth.ts";

/** As the product is built. */
const V8_FLAGS = `--v8-flags=${v8Flags.join(",")}`;

/** How many connections are open at a time: the kubelet calls for several volumes at once. */
const PARALLEL = 4;

const options = parseArgs({
  args: Deno.args,
  options: {
    connections: { type: "string", default: "100000" },
    every: { type: "string", default: "5000" },
    json: { type: "string" },
  },
}).values;

const samples = await measure(Number(options.connections), Number(options.every));
const required = { limitBytes: 110e6, of: "connection" };
Deno.exit(await report(`Deno ${Deno.version.deno}`, samples, required, options.json));

async function measure(connections: number, every: number): Promise<readonly Sample[]> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-bench-" });
  const server = spawnServer(`${folder}/csi.sock`);
  try {
    const lines = server.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const first = await lines.read();
    if (first.done) throw new Error("the server did not start");
    return await dialAndSample(server.pid, `unix://${folder}/csi.sock`, connections, every);
  } finally {
    await server.stdin.close();
    await server.status;
    await Deno.remove(folder, { recursive: true });
  }
}

function spawnServer(socket: string): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      V8_FLAGS,
      new URL("connections_server.ts", import.meta.url).pathname,
      `unix://${socket}`,
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
}

async function dialAndSample(
  pid: number,
  target: string,
  connections: number,
  every: number,
): Promise<readonly Sample[]> {
  const csi = loadCsi();
  const samples = new Samples(() => residentBytes(pid));
  await samples.take(0);
  for (let done = 0; done < connections;) {
    const batch = Math.min(every, connections - done);
    let left = batch;
    const worker = async () => {
      while (left-- > 0) await dialOnce(csi, target, left);
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    done += batch;
    await samples.take(done);
  }
  return samples.taken;
}

/** Dials, makes one call and hangs up. */
async function dialOnce(csi: CsiPackage, target: string, turn: number): Promise<void> {
  const { identity, close } = dial(csi, target, systemClock);
  try {
    await identity.call(turn % 2 === 0 ? "Probe" : "GetPluginInfo", {}, 30_000);
  } finally {
    close();
  }
}
