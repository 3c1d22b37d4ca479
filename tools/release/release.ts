// Puts a release together in dist/release, from the executables of `make image/binaries`:
// `deno run -A tools/release/release.ts [--out FOLDER]`. The same commit, compiled by the same Deno, gives the same bytes.
// Variables: ALLOW_DIRTY=1 makes one of changed sources too; DENO_COMPILE as for tools/build.ts.

import { createHash } from "node:crypto";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { version } from "../../src/cli/build_version.ts";
import { BUNDLE } from "../build.ts";
import { commitOf, secondsOf } from "../commit.ts";
import { complain, print } from "../print.ts";
import { type Licensed, noticesOf, packagesIn, readLicense } from "./licenses.ts";
import { billOfMaterials, type Lock } from "./sbom.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const ARCHITECTURES = ["amd64", "arm64"];

/** Longest a step may take. */
const LIMIT_MS = 60_000;

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: { out: { type: "string", default: "dist/release" } },
  });
  const out = join(ROOT, values.out);
  const commit = await commitOf(ROOT);
  if (!/^[0-9a-f]{40}$/.test(commit) && Deno.env.get("ALLOW_DIRTY") !== "1") {
    throw new Error(
      `A release is made of a commit, and this is ${commit}; ALLOW_DIRTY=1 makes one all the same`,
    );
  }
  const seconds = await secondsOf(ROOT, Deno.env.get("SOURCE_DATE_EPOCH"));
  await Deno.remove(out, { recursive: true }).catch(ignoreMissing);
  await Deno.mkdir(out, { recursive: true });
  const name = (rest: string) => join(out, `rds-csi-${version}${rest}`);
  for (const architecture of ARCHITECTURES) {
    await Deno.copyFile(join(ROOT, `dist/linux-${architecture}/rds-csi`), name(`-linux-${architecture}`));
  }
  const packages = await insidePackages();
  await Deno.writeTextFile(name(".licenses.txt"), noticesOf(packages));
  const lock = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.lock"))) as Lock;
  const bill = { version, commit, seconds, deno: await compilingDeno(), packages, lock };
  await Deno.writeTextFile(name(".cdx.json"), billOfMaterials(bill));
  await Deno.copyFile(join(ROOT, "deploy/manifests/rds-csi.yaml"), name(".manifests.yaml"));
  await packChart(name(".chart.tgz"), seconds);
  await writeSums(out);
}

/** The packages of which anything is in the bundle, which is the same for all architectures. */
async function insidePackages(): Promise<Licensed[]> {
  const folder = join(ROOT, BUNDLE);
  const texts = await Array.fromAsync(
    Deno.readDir(folder),
    ({ name }) => Deno.readTextFile(join(folder, name)),
  );
  const folders = await packageFolders();
  return await Promise.all(
    packagesIn(texts).map((one) => {
      const folder = folders.get(`${one.name}@${one.version}`);
      if (folder === undefined) {
        throw new Error(`No folder of ${one.name}@${one.version}, which is in the bundle`);
      }
      return readLicense(one, folder);
    }),
  );
}

async function packageFolders(): Promise<Map<string, string>> {
  const { npmPackages } = JSON.parse(await outputOf(Deno.execPath(), ["info", "--json", "src/main.ts"])) as {
    npmPackages: Readonly<Record<string, { name: string; version: string; localPath: string }>>;
  };
  return new Map(Object.values(npmPackages).map((one) => [`${one.name}@${one.version}`, one.localPath]));
}

async function compilingDeno(): Promise<string> {
  const text = await outputOf(Deno.env.get("DENO_COMPILE") || Deno.execPath(), ["--version"]);
  const found = /^deno (\S+)/.exec(text)?.[1];
  if (found === undefined) throw new Error(`The compiling Deno does not say its version: ${text}`);
  return found;
}

/** As `helm package` does it, but the same each time: that notes the time of packing. */
async function packChart(file: string, seconds: number): Promise<void> {
  const script =
    'tar --create --sort=name --mtime="@$2" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX ' +
    '--transform="s,^chart,rds-csi," --directory=deploy chart | gzip --no-name --best >"$1"';
  await outputOf("/bin/bash", ["-o", "pipefail", "-c", script, "bash", file, String(seconds)]);
}

/** As `sha256sum --check` reads them. */
async function writeSums(folder: string): Promise<void> {
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).toSorted();
  const lines: string[] = [];
  for (const name of names) {
    const bytes = await Deno.readFile(join(folder, name));
    lines.push(`${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`);
    print(`${relative(ROOT, join(folder, name))}: ${(bytes.length / 1e6).toFixed(1)} MB`);
  }
  await Deno.writeTextFile(join(folder, "SHA256SUMS"), lines.join(""));
}

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args: [...args],
    cwd: ROOT,
    stdin: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  if (!success) throw new Error(`${program} failed: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout);
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

await main().catch((error) => {
  complain(error instanceof Error ? error.message : String(error));
  Deno.exit(1);
});
