// How long the driver takes to start and how much memory it needs when idle, beside the least that serves a gRPC call with the
// same packages (hello.ts), which is compiled as the driver is. Both take turns, so that what else runs slows both.
import { join } from "node:path";
import { bundle, compileArguments } from "../../tools/build.ts";
import { systemClock } from "../../src/host/clock.ts";
import { freePort, type Part, projectRoot, startPart, startProgram, type Subject } from "../support/parts.ts";
import { percentile } from "./rpc.ts";
import { isReady, type Running, withStack } from "./stack.ts";

/** What starts: a role of the driver, both in one process, or the baseline. */
export type Starter = "hello" | "node" | "controller" | "all";

/** Medians of what each starter needed. */
export type StartMeasurements = Readonly<Partial<Record<Starter, StartCost>>>;

/** What one starter needed. */
export interface StartCost {
  /** From the spawn to the first Probe that says ready; a controller's router has answered by then. */
  readonly startMs: number;
  readonly startsMs: readonly number[];
  /**
   * Resident memory after that and some idle seconds, the least of some processes: how much of an executable's file the kernel
   * maps beyond what is needed differs by 20 MB.
   */
  readonly idleRssBytes: number;
}

/** How much is measured. */
export interface StartOptions {
  readonly starts: number;
  readonly idles: number;
  readonly idleMs: number;
}

const helloFolder = "dist/hello";

/** Compiles the baseline; answers its path. */
export async function buildHello(): Promise<string> {
  const out = join(projectRoot, helloFolder, "hello");
  const file = await bundle("tests/bench/hello.ts", helloFolder);
  const args = compileArguments(file, out, (name) => Deno.env.get(name));
  const { success, stderr } = await new Deno.Command(Deno.env.get("DENO_COMPILE") || Deno.execPath(), {
    args,
    cwd: projectRoot,
    stdin: "null",
  }).output();
  if (!success) throw new Error(`Cannot compile the baseline: ${new TextDecoder().decode(stderr)}`);
  return out;
}

/** Measures roles of the driver, and the baseline where it is given. @param hello the baseline's path */
export async function measureStarts(
  subject: Subject,
  hello: string | undefined,
  options: StartOptions,
): Promise<StartMeasurements> {
  return await withStack(subject, { mode: "all" }, async (running) => {
    await running.driver.stop();
    const names: readonly Starter[] = [
      "node",
      "controller",
      "all",
      ...hello === undefined ? [] : ["hello" as const],
    ];
    const samples = names.map((name) => ({ name, startsMs: [] as number[], rssBytes: [] as number[] }));
    const rounds = Math.max(options.starts, options.idles);
    for (let round = 0; round < rounds; round++) {
      for (const { name, startsMs, rssBytes } of samples) {
        const idleMs = round < options.idles ? options.idleMs : undefined;
        const cost = await startOnce(subject, name, running, hello, idleMs);
        startsMs.push(cost.startMs);
        if (cost.rssBytes !== undefined) rssBytes.push(cost.rssBytes);
      }
    }
    return Object.fromEntries(samples.map(({ name, startsMs, rssBytes }) => [name, {
      startMs: percentile(startsMs, 0.5),
      startsMs,
      idleRssBytes: Math.min(...rssBytes),
    }]));
  });
}

/** @param idleMs how long it idles before its memory is read; undefined reads none */
async function startOnce(
  subject: Subject,
  name: Starter,
  { folder, driver }: Running,
  hello: string | undefined,
  idleMs: number | undefined,
): Promise<{ startMs: number; rssBytes: number | undefined }> {
  const port = freePort();
  const address = name === "hello" ? `tcp://127.0.0.1:${port}` : `unix://${folder}/again.sock`;
  const startedMs = performance.now();
  const part: Part = name === "hello"
    ? startProgram("hello", [hello!], folder, [String(port)])
    : startPart(subject, "serve", folder, argsOf(driver.args, name, address));
  try {
    await part.ready(() => isReady(address), 5);
    const startMs = performance.now() - startedMs;
    if (idleMs !== undefined) await systemClock.sleep(idleMs);
    return { startMs, rssBytes: idleMs === undefined ? undefined : await part.residentBytes() };
  } finally {
    // The baseline knows no way to end well.
    if (name === "hello") await part.kill();
    else await part.stop();
  }
}

function argsOf(args: readonly string[], mode: Starter, address: string): string[] {
  return args.map((arg, at) => {
    if (args[at - 1] === "--mode") return mode;
    return args[at - 1] === "--endpoint" ? address : arg;
  });
}
