// Builds dist/rds-csi: `deno run -A tools/build.ts [--entry FILE] [--out FILE | --for amd64|arm64]`. The sources are
// bundled first, so that it only contains what runs; then the bundle is compiled with explicit permissions. With --for
// it is compiled for an image, as dist/linux-…/rds-csi. Variables: DENO_COMPILE, the compiling Deno (default: the
// running one); DENORT_BIN, its runtime, and DENORT_BIN_ARM64, that for an image (default: downloaded by the compiling
// Deno); COMPILE_TARGET, another platform; ALLOW_NET, the only hosts it may ever reach; ALLOW_FOLDERS, more folders
// that it may read and write.

import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { serveFlags } from "../src/cli/config/flag_tables.ts";
import { withoutMachine } from "./bundle_names.ts";
import { commitOf, secondsOf } from "./commit.ts";
import { hostOutput } from "./host_command.ts";
import { type Architecture, parseArchitecture } from "./image/root.ts";
import { permissionFlags, PERMISSIONS, type Permissions, unionOf } from "./permissions.ts";
import { complain, print } from "./print.ts";
import { v8Flags } from "./v8_flags.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Largest executable, in bytes. */
const MAX_BYTES = 110_000_000;

/** How long a step may take; the first one may download a runtime of a hundred megabytes. */
const LIMIT_MS = 10 * 60_000;

/** The default address of the metrics. */
const DEFAULT_METRICS = `0.0.0.0${serveFlags["metrics-address"]?.fallback ?? ""}`;

/** Optional native parts of packages, which work without them. */
const EXTERNALS = ["*.node", "cpu-features"];

/** The path of the executable's bundle: included files are found relative to it. */
export const BUNDLE = "dist/bundle";

/** Files in the executable besides its bundle. */
const INCLUDED = ["proto/csi.proto", "proto/pluginregistration.proto"];

/** The compiler's name of each platform with an image, and the variable that gives its runtime. */
const imagePlatforms: Readonly<Record<Architecture, { readonly target: string; readonly runtime: string }>> =
  {
    amd64: { target: "x86_64-unknown-linux-gnu", runtime: "DENORT_BIN" },
    arm64: { target: "aarch64-unknown-linux-gnu", runtime: "DENORT_BIN_ARM64" },
  };

/**
 * Globals that packages expect outside a bundle: CommonJS ones their `require`, and all of them Node's timers, which
 * are objects. Before 2.9 the runtime's own timers are numbers, on which ssh2 then calls `refresh()` and drops the
 * connection.
 */
const PREAMBLE = [
  'import{createRequire as __cr}from"node:module";',
  "const require=__cr(import.meta.url),__dirname=import.meta.dirname;",
  'const{setTimeout:__a,setInterval:__b,clearTimeout:__c,clearInterval:__d}=require("node:timers");',
  "Object.assign(globalThis,{setTimeout:__a,setInterval:__b,clearTimeout:__c,clearInterval:__d});\n",
].join("");

/** The permissions of the executable: the union of its roles, changed by the build's variables. */
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
    // The cache would be a file with a predictable name in /tmp, and take 5 MB of memory; it saves no time at the
    // start.
    "--no-code-cache",
    `--v8-flags=${v8Flags.join(",")}`,
    ...permissionFlags(permissionsOfBuild(env)),
    ...INCLUDED.map((file) => `--include=${file}`),
    ...(target ? [`--target=${target}`] : []),
    `--output=${out}`,
    bundle,
  ];
}

function listed(text: string | undefined): string[] {
  return (text ?? "").split(",").map((part) => part.trim()).filter((part) => part !== "");
}

/** Runs a program to its end; returns what it printed. */
async function run(program: string, args: readonly string[]): Promise<string> {
  // The compiler's stack overflows on large bundles otherwise.
  const env = { NO_COLOR: "1", RUST_MIN_STACK: "33554432" };
  return await hostOutput(program, args, { cwd: ROOT, env, limitMs: LIMIT_MS });
}

/**
 * Bundles a program into `folder`/main.js, with the globals that packages expect; returns its path. The same sources
 * give the same bytes, in any folder.
 *
 * @param splits whether modules that are imported on demand become separate files: a node then never reads what only a
 *   controller needs
 */
export async function bundle(entry: string, folder: string, splits = false): Promise<string> {
  const out = resolve(ROOT, folder);
  await Deno.remove(out, { recursive: true }).catch(ignoreMissing);
  const externals = EXTERNALS.flatMap((name) => `--external=${name}`);
  await run(Deno.execPath(), [
    "bundle",
    ...["--platform=deno", ...splits ? ["--code-splitting"] : [], ...externals, "--outdir", folder],
    entry,
  ]);
  const files = await takeFiles(out);
  const first = basename(entry).replace(/\.ts$/, ".js");
  const text = files.get(first);
  if (text === undefined) throw new Error(`The bundler made no ${first}`);
  files.delete(first);
  files.set("main.js", text);
  const preamble = PREAMBLE +
    `globalThis.RDS_CSI_COMMIT=${JSON.stringify(await commitOf(ROOT, Deno.env.get("REVISION")))};\n`;
  for (const [name, text] of withoutMachine(files, "main.js", await packageFolder())) {
    await Deno.writeTextFile(join(out, name), preamble + text);
  }
  return join(folder, "main.js");
}

/** Reads and removes the files of a folder. */
async function takeFiles(folder: string): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  for await (const { name } of Deno.readDir(folder)) {
    files.set(name, await Deno.readTextFile(join(folder, name)));
    await Deno.remove(join(folder, name));
  }
  return files;
}

/**
 * The text that the bundler writes before the names of packages: the path from here to the cache of the used registry.
 */
async function packageFolder(): Promise<string> {
  const { npmPackages } = JSON.parse(await run(Deno.execPath(), ["info", "--json", "src/main.ts"])) as {
    npmPackages: Readonly<Record<string, { name: string; version: string; localPath: string }>>;
  };
  const [one] = Object.values(npmPackages);
  if (one === undefined) throw new Error("The sources use no package");
  return relative(ROOT, one.localPath.slice(0, -`${one.name}/${one.version}`.length)) + "/";
}

/** The compiler records the modification time of each file, so it is set to the time of the commit. */
async function setTimes(bundled: string): Promise<void> {
  const seconds = await secondsOf(ROOT, Deno.env.get("SOURCE_DATE_EPOCH"));
  const folder = dirname(join(ROOT, bundled));
  const names = await Array.fromAsync(Deno.readDir(folder), ({ name }) => join(folder, name));
  for (const file of [...names, ...INCLUDED.map((name) => join(ROOT, name))]) {
    await Deno.utime(file, seconds, seconds);
  }
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/** A given runtime may belong to another machine than requested. */
async function assertMachine(file: string, target: string | undefined): Promise<void> {
  const machines: Readonly<Record<string, number>> = { x86_64: 62, aarch64: 183 };
  const [name = ""] = (target || Deno.build.target).split("-");
  using opened = await Deno.open(file);
  const head = new Uint8Array(20);
  await opened.read(head);
  // e_machine of the ELF header (elf(5)).
  const machine = new DataView(head.buffer).getUint16(18, true);
  if (machine === machines[name]) return;
  await Deno.remove(file);
  throw new Error(
    `Compiled for machine ${machine} of ELF where ${name} was asked for: is DENORT_BIN of another one?`,
  );
}

/** What a compiler says that had no runtime: only the address, where it could not download one. */
export function withAdvice(text: string): string {
  const url = /error sending request for url \((\S+)\)/.exec(text)?.[1];
  const advice = "put a denort of the compiling Deno's version on this machine, and run: " +
    "make build DENORT_BIN=/path/to/denort";
  return url === undefined
    ? `Cannot compile the executable. If its runtime cannot be downloaded here, ${advice}.\n${text}`
    : `Cannot compile the executable because its runtime cannot be downloaded: url=${url}; ${advice}`;
}

/** Sets the variables for an image's platform; returns the executable's path. */
function chooseImage(architecture: Architecture): string {
  const { target, runtime } = imagePlatforms[architecture];
  Deno.env.set("COMPILE_TARGET", target);
  Deno.env.set("DENORT_BIN", Deno.env.get(runtime) ?? "");
  return `dist/linux-${architecture}/rds-csi`;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      entry: { type: "string", default: "src/main.ts" },
      out: { type: "string", default: "dist/rds-csi" },
      for: { type: "string" },
    },
  });
  const out = values.for === undefined ? values.out : chooseImage(parseArchitecture(values.for));
  const env = (name: string) => Deno.env.get(name);
  await Deno.mkdir(join(ROOT, dirname(out)), { recursive: true });
  const file = await bundle(values.entry, BUNDLE, true);
  await setTimes(file);
  const args = compileArguments(file, out, env);
  print(`deno ${args.filter((arg) => arg !== "--quiet").join(" \\\n    ")}`);
  // An empty variable means unset to make, and a file without a name to the compiler.
  if (env("DENORT_BIN") === "") Deno.env.delete("DENORT_BIN");
  try {
    await run(env("DENO_COMPILE") || Deno.execPath(), args);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new Error(env("DENORT_BIN") ? text : withAdvice(text), { cause: error });
  }
  await assertMachine(join(ROOT, out), env("COMPILE_TARGET"));
  const { size } = await Deno.stat(join(ROOT, out));
  print(`${out}: ${(size / 1e6).toFixed(1)} MB, and ${MAX_BYTES / 1e6} MB is the most`);
  return size <= MAX_BYTES ? 0 : 1;
}

if (import.meta.main) {
  Deno.exit(
    await main().catch((error) => {
      complain(error instanceof Error ? error.message : String(error));
      return 1;
    }),
  );
}
