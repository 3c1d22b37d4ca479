// Builds dist/rds-csi: `deno run -A tools/build.ts [--entry FILE] [--out FILE]`.
// The sources are bundled first, so that only what runs is inside; then the bundle is compiled with explicit permissions.
// Variables: DENO_COMPILE, the compiling Deno (default: the running one); DENORT_BIN, its runtime (default: downloaded by
// the compiling Deno); COMPILE_TARGET, another platform; ALLOW_NET, the only hosts it may ever reach; ALLOW_FOLDERS, more
// folders that it may read and write.

import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { serveFlags } from "../src/config/flag_tables.ts";
import { permissionFlags, PERMISSIONS, type Permissions, unionOf } from "./permissions.ts";
import { complain, print } from "./print.ts";
import { v8Flags } from "./v8_flags.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Largest executable, in bytes. */
const MOST_BYTES = 110_000_000;

/** Longest a step may take; a first one downloads a runtime of a hundred megabytes. */
const LIMIT_MS = 10 * 60_000;

/** Where metrics are served unless a flag says otherwise. */
const DEFAULT_METRICS = `0.0.0.0${serveFlags["metrics-address"]?.fallback ?? ""}`;

/** Optional native parts of packages: there is a way without each of them. */
const EXTERNALS = ["*.node", "cpu-features"];

/**
 * What packages find outside a bundle: CommonJS ones their `require`, and all of them Node's timers, which are objects.
 * Before 2.9 the runtime's own are numbers, on which ssh2 then calls `refresh()` and drops the connection.
 */
const PREAMBLE = [
  'import{createRequire as __cr}from"node:module";',
  "const require=__cr(import.meta.url),__dirname=import.meta.dirname;",
  'const{setTimeout:__a,setInterval:__b,clearTimeout:__c,clearInterval:__d}=require("node:timers");',
  "Object.assign(globalThis,{setTimeout:__a,setInterval:__b,clearTimeout:__c,clearInterval:__d});\n",
].join("");

/** What the executable may do: the union of its roles, and what the build's variables change. */
export function permissionsOfBuild(env: (name: string) => string | undefined): Permissions {
  const all = unionOf(Object.values(PERMISSIONS));
  const folders = listed(env("ALLOW_FOLDERS"));
  const hosts = listed(env("ALLOW_NET"));
  return {
    ...all,
    read: [...all.read, ...folders],
    write: [...all.write, ...folders],
    // Listening counts as well: metrics are served at the default address.
    net: hosts.length > 0 ? [...hosts, DEFAULT_METRICS] : all.net,
  };
}

/** The arguments of `deno compile` for this bundle. */
export function compileArguments(
  bundle: string,
  out: string,
  env: (name: string) => string | undefined,
): string[] {
  const target = env("COMPILE_TARGET");
  return [
    "compile",
    ...["--quiet", "--no-check", "--no-config", "--no-lock", "--no-remote", "--no-npm"],
    // The cache would be a file of a predictable name in /tmp, and 5 MB of memory; it saves no time at start.
    "--no-code-cache",
    `--v8-flags=${v8Flags.join(",")}`,
    ...permissionFlags(permissionsOfBuild(env)),
    "--include=proto/csi.proto",
    "--include=proto/pluginregistration.proto",
    ...(target ? [`--target=${target}`] : []),
    `--output=${out}`,
    bundle,
  ];
}

function listed(text: string | undefined): string[] {
  return (text ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "");
}

async function run(program: string, args: readonly string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    cwd: ROOT,
    // The compiler's stack overflows on large bundles otherwise.
    env: { NO_COLOR: "1", RUST_MIN_STACK: "33554432" },
    stdin: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  if (success) return;
  const decoder = new TextDecoder();
  throw new Error(`${program} ${args[0]} failed:\n${decoder.decode(stdout)}${decoder.decode(stderr)}`);
}

/**
 * Bundles a program into `folder`/main.js, with what packages expect to find; answers its path.
 *
 * @param splits whether what is imported only when needed becomes files of their own, beside it: a node then never reads
 * what only a controller does
 */
export async function bundle(entry: string, folder: string, splits = false): Promise<string> {
  const out = resolve(ROOT, folder);
  await Deno.remove(out, { recursive: true }).catch(ignoreMissing);
  const preamble = PREAMBLE + `globalThis.RDS_CSI_COMMIT=${JSON.stringify(await commitOf(ROOT))};\n`;
  const externals = EXTERNALS.flatMap((name) => `--external=${name}`);
  await run(Deno.execPath(), [
    "bundle",
    ...["--platform=deno", ...splits ? ["--code-splitting"] : [], ...externals, "--outdir", folder],
    entry,
  ]);
  for await (const { name } of Deno.readDir(out)) {
    if (!name.endsWith(".js")) continue;
    await Deno.writeTextFile(join(out, name), preamble + await Deno.readTextFile(join(out, name)));
  }
  const main = join(folder, "main.js");
  await Deno.rename(join(out, basename(entry).replace(/\.ts$/, ".js")), resolve(ROOT, main));
  return main;
}

/** The commit that a folder is at, `-dirty` when something in it was changed; `unknown` where git knows nothing of it. */
async function commitOf(folder: string): Promise<string> {
  try {
    const args = ["-C", folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"];
    const { success, stdout } = await new Deno.Command("git", { args, stdin: "null" }).output();
    return success ? new TextDecoder().decode(stdout).trim() : "unknown";
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "unknown";
    throw error;
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      entry: { type: "string", default: "src/main.ts" },
      out: { type: "string", default: "dist/rds-csi" },
    },
  });
  const env = (name: string) => Deno.env.get(name);
  const out = values.out;
  await Deno.mkdir(join(ROOT, dirname(out)), { recursive: true });
  const file = await bundle(values.entry, join(dirname(out), "bundle"), true);
  const args = compileArguments(file, out, env);
  print(`deno ${args.filter((arg) => arg !== "--quiet").join(" \\\n    ")}`);
  // Empty means not set to make, and a file of no name to the compiler.
  if (env("DENORT_BIN") === "") Deno.env.delete("DENORT_BIN");
  await run(env("DENO_COMPILE") || Deno.execPath(), args);
  const { size } = await Deno.stat(join(ROOT, out));
  print(`${out}: ${(size / 1e6).toFixed(1)} MB, and ${MOST_BYTES / 1e6} MB is the most`);
  return size <= MOST_BYTES ? 0 : 1;
}

if (import.meta.main) {
  Deno.exit(
    await main().catch((error) => {
      complain(error instanceof Error ? error.message : String(error));
      return 1;
    }),
  );
}
