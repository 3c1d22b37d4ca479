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
  await Deno.copyFile(join(projectRoot, program), join(other, program));
  const chunks = Array.from({ length: Math.ceil(schedules / chunk) }, (_, index) => index * chunk);
  const found = await onAllCores(chunks, async (from) => {
    const count = Math.min(chunk, schedules - from);
    const [mine, its] = await Promise.all(
      [projectRoot, other].map((root) => answersIn(root, first + from, count)),
    );
    const odd = mine!.findIndex(({ drawn }, at) => drawn !== its![at]?.drawn);
    if (odd >= 0) {
      throw new Error(
        `Cannot compare because ${revision} draws another schedule: seed=${first + from + odd}`,
      );
    }
    return differences(its!.map(({ answers }) => answers), mine!.map(({ answers }) => answers), first + from);
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

/** What was drawn of a seed, and what came of it. */
interface Answers {
  readonly drawn: string;
  readonly answers: readonly string[];
}

/** The answers of each schedule. */
async function answersIn(root: string, from: number, count: number): Promise<Answers[]> {
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
