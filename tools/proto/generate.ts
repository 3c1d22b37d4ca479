// Makes src/csi/generated (or FOLDER) from the files of proto/: `deno run -A tools/proto/generate.ts [--check] [FOLDER]`.
// With --check nothing is written: it exits 1 and names the files that are out of step.

import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { LOADER_OPTIONS } from "../../src/csi/server/proto.ts";
import { loadDefinitions, readSecrets, renderSecrets } from "./secrets.ts";
import { renderTypes } from "./types.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PROTO = "proto/csi.proto";
const REGISTRATION_PROTO = "proto/pluginregistration.proto";
const PROTOS = [PROTO, REGISTRATION_PROTO];
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

function generate(): Files {
  const csi = loadDefinitions(join(ROOT, PROTO), LOADER_OPTIONS);
  const registration = loadDefinitions(join(ROOT, REGISTRATION_PROTO), LOADER_OPTIONS);
  const services = ["csi.v1.Identity", "csi.v1.Controller", "csi.v1.Node"];
  return new Map([
    ["csi.ts", renderTypes(csi, PROTO, services)],
    [
      "pluginregistration.ts",
      renderTypes(registration, REGISTRATION_PROTO, ["pluginregistration.Registration"]),
    ],
    ["secrets.ts", renderSecrets(readSecrets(csi))],
  ]);
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
  const files = generate();
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
