// Runs every check that needs no running driver: `deno run -A tools/verify.ts [NAME…]`. A check that passes is one line.

import { fileURLToPath } from "node:url";
import { complain, print } from "./print.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** How long a single check may take; comparing the proto may have to download and compile first. */
const LIMIT_MS = 10 * 60_000;

const SOURCES = ["src", "tests", "tools"];

/** One check: a command that exits 0 when all is well. */
interface Check {
  readonly name: string;
  readonly what: string;
  readonly command: readonly string[];
}

const deno = Deno.execPath();

/** The cheapest first. */
const CHECKS: readonly Check[] = [
  { name: "format", what: "every file is formatted", command: [deno, "fmt", "--check"] },
  { name: "lint", what: "the recommended rules hold", command: [deno, "lint", "--quiet", ...SOURCES] },
  {
    name: "architecture",
    what: "imports follow the arrow, nothing is reached for, files and functions are short",
    command: [
      deno,
      "lint",
      "--quiet",
      "--config=tools/verify.json",
      "--ignore=src/csi/generated",
      ...SOURCES,
    ],
  },
  {
    name: "circles",
    what: "no modules of src/ import each other",
    command: [deno, "run", "--allow-all", "tools/verify_circles.ts"],
  },
  { name: "types", what: "everything type-checks", command: [deno, "check", "--quiet", ...SOURCES] },
  {
    name: "generated",
    what: "the generated types are in step with the files of proto/",
    command: [deno, "run", "--allow-all", "tools/proto/generate.ts", "--check"],
  },
  {
    name: "docs",
    what: "the reference pages are in step with the code",
    command: [deno, "run", "--allow-all", "tools/docs.ts", "--check"],
  },
  {
    name: "manifests",
    what: "deploy/manifests are in step with the chart",
    command: [deno, "run", "--allow-all", "tools/deploy/manifests.ts", "--check"],
  },
  {
    name: "workflows",
    what: "actionlint takes .github/workflows",
    command: ["sh", "tools/verify_workflows.sh"],
  },
  {
    name: "proto",
    what: "the files of proto/ equal the published definitions",
    command: ["sh", "tools/proto/verify.sh"],
  },
];

async function run({ name, what, command: [program = "", ...args] }: Check): Promise<boolean> {
  const started = performance.now();
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args,
    cwd: ROOT,
    env: { NO_COLOR: Deno.stdout.isTerminal() ? "" : "1", RUST_BACKTRACE: "0" },
    stdin: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  const decoder = new TextDecoder();
  const output = decoder.decode(stdout) + decoder.decode(stderr);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  // A check that could not run must not read as one that passed.
  const skipped = output.split("\n").filter((line) => line.startsWith("SKIPPED"));
  const word = success ? (skipped.length > 0 ? "SKIPPED" : "ok") : "FAILED";
  print(`${name.padEnd(13)} ${word.padEnd(7)} ${seconds.padStart(5)} s  ${what}`);
  if (!success) complain(output.trimEnd());
  for (const line of success ? skipped : []) complain(line);
  return success && (skipped.length === 0 || !refuseSkips);
}

const refuseSkips = Deno.args.includes("--no-skips");
const names = Deno.args.filter((arg) => arg !== "--no-skips");
const unknown = names.filter((name) => !CHECKS.some((check) => check.name === name));
if (unknown.length > 0) {
  complain(`no such check: ${unknown.join(", ")}; there are ${CHECKS.map((one) => one.name).join(", ")}`);
  Deno.exit(2);
}
let failed = 0;
for (const check of CHECKS) {
  if (names.length === 0 || names.includes(check.name)) failed += await run(check) ? 0 : 1;
}
print(failed === 0 ? "verify: ok" : `verify: ${failed} failed`);
Deno.exit(failed === 0 ? 0 : 1);
