/**
 * Runs the same schedules on this tree and on another commit, and prints which calls are answered otherwise.
 *
 * Usage: deno run -A tests/histories/compare.ts REVISION [--schedules=20000] [--first=1]
 *
 * It fails when an answer differs, so that a rebuilding shows what it changed.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { print } from "../../tools/print.ts";
import { projectRoot } from "../support/parts.ts";
import { onAllCores } from "./cores.ts";
import { differences } from "./differences.ts";

/** How many schedules one process runs. */
const chunk = 1_000;
/** What draws the schedules. Where it differs, the same seed is another schedule. */
const drawing = [
  "schedule.ts",
  "draw_schedule.ts",
  "draw_partners.ts",
  "draw_people.ts",
  "draw_calm.ts",
  "draw.ts",
];
const program = "tests/histories/answers.ts";

const options = {
  schedules: { type: "string", default: "20000" },
  first: { type: "string", default: "1" },
} as const;
const { values, positionals } = parseArgs({ args: Deno.args, options, allowPositionals: true });
const [schedules, first] = [Number(values.schedules), Number(values.first)];
const [revision] = positionals;
if (revision === undefined) throw new Error("Cannot compare because no revision is named, such as main~5");

const other = await Deno.makeTempDir({ prefix: "rds-csi-compare-" });
try {
  await run("sh", ["-c", `git archive "$1" | tar -x -C "$2"`, "sh", revision, other], projectRoot);
  for (const name of drawing) {
    const [here, there] = await Promise.all(
      [projectRoot, other].map((root) => textOf(join(root, "tests/histories", name))),
    );
    if (here !== there) throw new Error(`Cannot compare because ${name} differs: the schedules would, too`);
  }
  await Deno.copyFile(join(projectRoot, program), join(other, program));
  const chunks = Array.from({ length: Math.ceil(schedules / chunk) }, (_, index) => index * chunk);
  const found = await onAllCores(chunks, async (from) => {
    const count = Math.min(chunk, schedules - from);
    const [mine, its] = await Promise.all(
      [projectRoot, other].map((root) => answersIn(root, first + from, count)),
    );
    return differences(its!, mine!, first + from);
  });
  const all = found.flat();
  const kinds = Map.groupBy(all, ({ before, after }) => `${before} -> ${after}`);
  for (const [kind, ones] of kinds) {
    print(`${ones.length} times ${kind}; first: seed ${ones[0]!.seed}, call ${ones[0]!.call}`);
  }
  print(`${all.length} of the calls of ${schedules} schedules are answered otherwise than by ${revision}`);
  Deno.exitCode = all.length === 0 ? 0 : 1;
} finally {
  await Deno.remove(other, { recursive: true });
}

/** The text of a file; undefined where there is none. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return await Deno.readTextFile(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** The answers of each schedule. */
async function answersIn(root: string, from: number, count: number): Promise<string[][]> {
  const args = ["run", "-A", "--no-check", join(root, program), String(from), String(count)];
  const text = await run(Deno.execPath(), args, root);
  return text.trimEnd().split("\n").map((line) => JSON.parse(line));
}

/** Runs a program and returns what it prints. @throws {Error} when it fails */
async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(command, { args: [...args], cwd }).output();
  if (code !== 0) throw new Error(`Cannot run ${command}: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}
