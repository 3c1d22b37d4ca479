// Makes src/csi/generated (or FOLDER) from the files of proto/: `deno run -A tools/proto/generate.ts [--check] [FOLDER]`.
// With --check nothing is written: it exits 1 and names the files that are out of step.

import type { Options } from "@grpc/proto-loader";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { LOADER_OPTIONS } from "../../src/csi/server/proto.ts";
import { readSecrets, renderSecrets } from "./secrets.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PROTO = "proto/csi.proto";
const PROTOS = [PROTO, "proto/pluginregistration.proto"];
const TARGET = join("src", "csi", "generated");

/** Path below the target folder to content. */
export type Files = ReadonlyMap<string, string>;

/** Names every file that is missing, left over or different in `actual`. */
export function findDifferences(expected: Files, actual: Files): string[] {
  const differences: string[] = [];
  for (const [path, content] of expected) {
    const found = actual.get(path);
    if (found === undefined) differences.push(`${path} is missing`);
    else if (found !== content) differences.push(`${path} differs`);
  }
  for (const path of actual.keys()) {
    if (!expected.has(path)) differences.push(`${path} is left over`);
  }
  return differences.sort();
}

/**
 * The generator's flags for these loader options.
 *
 * @throws {Error} when an option has no flag.
 */
export function loaderFlags(options: Options): string[] {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === true) return [`--${name}`];
    if (value === false) return [];
    if (value === String) return [`--${name}=String`];
    throw new Error(`the type generator has no flag for the loader option ${name}`);
  });
}

async function generate(): Promise<Files> {
  const folder = await Deno.makeTempDir({ prefix: "rds-csi-types-" });
  try {
    await runGenerator(folder);
    const files = new Map(
      [...await readFolder(folder)].map(([path, source]) => [path, importBuffer(source)]),
    );
    files.set("secrets.ts", renderSecrets(readSecrets(join(ROOT, PROTO), LOADER_OPTIONS)));
    return reachable(files, await importedByHand());
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Matches the path of what a line imports from. */
const importPath = /\bfrom ["']([^"']+)["']/g;

/** The files that are imported, by others of them too: nothing else is kept. */
export function reachable(files: Files, roots: readonly string[]): Files {
  const kept = new Map<string, string>();
  const visit = (path: string) => {
    const source = files.get(path);
    if (source === undefined || kept.has(path)) return;
    kept.set(path, source);
    for (const [, to] of source.matchAll(importPath)) visit(join(dirname(path), to!));
  };
  for (const root of roots) visit(root);
  return kept;
}

/** What the sources and the tests import of the generated files, by path below the folder. */
async function importedByHand(): Promise<string[]> {
  const sources = await Promise.all(
    ["src", "tests", "tools"].map((folder) => readFolder(join(ROOT, folder))),
  );
  const texts = sources.flatMap((files) => [...files]).filter(([path]) => !path.startsWith("csi/generated/"));
  return texts.flatMap(([, text]) =>
    [...text.matchAll(/\/generated\/([^"]+\.ts)"/g)].map(([, path]) => path!)
  );
}

/** Not every Deno knows the generator's Buffer as a global type. */
function importBuffer(source: string): string {
  return /\bBuffer\b/.test(source) ? `import type { Buffer } from "node:buffer";\n${source}` : source;
}

async function runGenerator(folder: string): Promise<void> {
  const { imports } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      "--allow-env",
      "--allow-read",
      `--allow-write=${folder}`,
      `${imports["@grpc/proto-loader"]}/proto-loader-gen-types`,
      ...loaderFlags(LOADER_OPTIONS),
      "--grpcLib=@grpc/grpc-js",
      "--targetFileExtension=.ts",
      "--importFileExtension=.ts",
      `--outDir=${folder}`,
      ...PROTOS,
    ],
    cwd: ROOT,
  }).output();
  // The generator exits 0 even where it could not write a file, and tells only on its error output.
  const complaints = new TextDecoder().decode(stderr).trim();
  if (success && complaints === "") return;
  throw new Error(`the type generator failed:\n${new TextDecoder().decode(stdout)}${complaints}`);
}

async function readFolder(folder: string): Promise<Files> {
  const files = new Map<string, string>();
  async function visit(path: string): Promise<void> {
    for await (const entry of Deno.readDir(path)) {
      const child = join(path, entry.name);
      if (entry.isDirectory) await visit(child);
      else files.set(relative(folder, child), await Deno.readTextFile(child));
    }
  }
  try {
    await visit(folder);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return files;
}

async function write(target: string, files: Files, actual: Files): Promise<void> {
  for (const path of actual.keys()) {
    if (!files.has(path)) await Deno.remove(join(target, path));
  }
  for (const [path, content] of files) {
    if (actual.get(path) === content) continue;
    await Deno.mkdir(dirname(join(target, path)), { recursive: true });
    await Deno.writeTextFile(join(target, path), content);
  }
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

async function main(args: readonly string[]): Promise<number> {
  const check = args[0] === "--check";
  const [folder = join(ROOT, TARGET), ...tooMany] = check ? args.slice(1) : args;
  if (folder.startsWith("-") || tooMany.length > 0) {
    print("usage: generate.ts [--check] [FOLDER]");
    return 2;
  }
  const files = await generate();
  const actual = await readFolder(folder);
  const differences = findDifferences(files, actual);
  if (!check) {
    await write(folder, files, actual);
    print(`${TARGET}: ${files.size} files, ${differences.length} changed`);
    return 0;
  }
  if (differences.length === 0) {
    print(`${TARGET}: ${files.size} files in step with ${PROTOS.join(", ")}`);
    return 0;
  }
  print(`${TARGET} is out of step with ${PROTOS.join(", ")}; run tools/proto/generate.ts:`);
  for (const difference of differences) print(`  ${join(TARGET, difference)}`);
  return 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
