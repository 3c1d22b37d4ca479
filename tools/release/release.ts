// Builds a release in dist/release, from the executables of `make image/binaries`:
// `deno run -A tools/release/release.ts [--images | --files amd64|arm64 --root FOLDER] [--out FOLDER]`. With --images only
// the images, and with --files only what the Dockerfile adds to the root file system in a folder; both from any sources.
// The same commit, compiled by the same Deno, gives the same bytes. Variables: ALLOW_DIRTY=1 allows changed sources;
// RELEASE_SIGNING_KEY is the file of an SSH key that signs the checksums; DENO_COMPILE as for tools/build.ts.

import { createHash } from "node:crypto";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { version } from "../../src/cli/build_version.ts";
import { BUNDLE } from "../build.ts";
import { commitOf, secondsOf } from "../commit.ts";
import { type Architecture, architectures, parseArchitecture } from "../image/root.ts";
import { imagesIn } from "../image/chart_images.ts";
import { layOutFiles, type LicensedRelease, writeImages } from "../image/images.ts";
import { complain, print } from "../print.ts";
import { packChart } from "./chart.ts";
import { type Licensed, noticesOf, packagesIn, readLicense } from "./licenses.ts";
import { hostOutput } from "../host_command.ts";
import { readCompiler, runtimeDigest } from "./runtime.ts";
import { billOfMaterials, chartBill, type Lock, type Released, unverified } from "./sbom.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The signature's purpose, so that it is valid for nothing else. */
const SIGNED_AS = "rds-csi-release";

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      out: { type: "string", default: "dist/release" },
      images: { type: "boolean" },
      files: { type: "string" },
      root: { type: "string", default: "" },
    },
  });
  const out = resolve(ROOT, values.out);
  if (values.files !== undefined) {
    const architecture = parseArchitecture(values.files);
    const root = resolve(ROOT, values.root);
    return await layOutFiles(await describeRelease([architecture]), architecture, root, out);
  }
  const released = await describeRelease(architectures);
  const isClean = /^[0-9a-f]{40}$/.test(released.commit) || Deno.env.get("ALLOW_DIRTY") === "1";
  if (!isClean && !values.images) {
    throw new Error(
      `A release is made of a commit, and this is ${released.commit}; ALLOW_DIRTY=1 makes one all the same`,
    );
  }
  await Deno.remove(out, { recursive: true }).catch(ignoreMissing);
  await Deno.mkdir(out, { recursive: true });
  const name = (rest: string) => join(out, `rds-csi-${version}${rest}`);
  await Deno.writeTextFile(name(".licenses.txt"), noticesOf(released.packages));
  await writeImages(released, name);
  if (values.images) return await report(out);
  for (const architecture of architectures) {
    await Deno.copyFile(join(ROOT, `dist/linux-${architecture}/rds-csi`), name(`-linux-${architecture}`));
  }
  await Deno.writeTextFile(name(".cdx.json"), billOfMaterials(released));
  if (!released.compiler.isPinned) {
    complain(`${unverified}: the compiler is none that npm checked: path=${denoCompiler()}`);
  }
  await Deno.copyFile(join(ROOT, "deploy/manifests/rds-csi.yaml"), name(".manifests.yaml"));
  await packChart(name(".chart.tgz"), released.seconds, Deno.env.get("PROJECT_URL"));
  await describeChart(name(".chart.cdx.json"), released);
  await writeSums(out);
  await signSums(out, Deno.env.get("RELEASE_SIGNING_KEY"));
  await report(out);
}

/** Writes what the chart installs, and says of which images nobody knows whether they are the right ones. */
async function describeChart(file: string, released: Released): Promise<void> {
  const images = imagesIn(await Deno.readTextFile(join(ROOT, "deploy/chart/values.yaml")));
  await Deno.writeTextFile(file, chartBill(released, images));
  const open = images.filter(({ digest }) => digest === undefined).map(({ name }) => name);
  if (open.length > 0) {
    complain(`${unverified}: the chart has no digest of ${open.join(", ")}: make image/digests`);
  }
}

async function describeRelease(platforms: readonly Architecture[]): Promise<LicensedRelease> {
  return {
    version,
    commit: await commitOf(ROOT, Deno.env.get("REVISION")),
    seconds: await secondsOf(ROOT, Deno.env.get("SOURCE_DATE_EPOCH")),
    deno: await compilingDeno(),
    compiler: await readCompiler(
      denoCompiler(),
      await Deno.readTextFile(join(ROOT, "tools/deno/SHA256SUMS")),
    ),
    runtimes: await Promise.all(platforms.map(async (architecture) => ({
      architecture,
      digest: await runtimeDigest(join(ROOT, `dist/linux-${architecture}/rds-csi`)),
    }))),
    packages: await insidePackages(),
    lock: JSON.parse(await Deno.readTextFile(join(ROOT, "deno.lock"))) as Lock,
  };
}

/** The packages with any part in the bundle, which is the same for all architectures. */
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
  const { npmPackages } = JSON.parse(
    await hostOutput(Deno.execPath(), ["info", "--json", "src/main.ts"], { cwd: ROOT }),
  ) as {
    npmPackages: Readonly<Record<string, { name: string; version: string; localPath: string }>>;
  };
  return new Map(Object.values(npmPackages).map((one) => [`${one.name}@${one.version}`, one.localPath]));
}

/** The file of the compiler, as `tools/build.ts` takes it. */
function denoCompiler(): string {
  return Deno.env.get("DENO_COMPILE") || Deno.execPath();
}

async function compilingDeno(): Promise<string> {
  const text = await hostOutput(denoCompiler(), ["--version"]);
  const found = /^deno (\S+)/.exec(text)?.[1];
  if (found === undefined) throw new Error(`The compiling Deno does not say its version: ${text}`);
  return found;
}

/** In the form of `sha256sum --check`. */
async function writeSums(folder: string): Promise<void> {
  const lines: string[] = [];
  for (const name of await namesIn(folder)) {
    const bytes = await Deno.readFile(join(folder, name));
    lines.push(`${createHash("sha256").update(bytes).digest("hex")}  ${name}\n`);
  }
  await Deno.writeTextFile(join(folder, "SHA256SUMS"), lines.join(""));
}

/** Signs the checksums for `ssh-keygen -Y verify`, or prints that they are unsigned. */
async function signSums(folder: string, key: string | undefined): Promise<void> {
  if (key) {
    const sums = join(folder, "SHA256SUMS");
    await hostOutput("ssh-keygen", ["-Y", "sign", "-q", "-f", resolve(key), "-n", SIGNED_AS, sums]);
    return;
  }
  const text = "This release is not signed: RELEASE_SIGNING_KEY was not set when it was made.\n";
  await Deno.writeTextFile(join(folder, "UNSIGNED"), text);
  complain(text.trimEnd());
}

async function report(folder: string): Promise<void> {
  for (const name of await namesIn(folder)) {
    const { size } = await Deno.stat(join(folder, name));
    print(`${relative(ROOT, join(folder, name))}: ${(size / 1e6).toFixed(1)} MB`);
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).toSorted();
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

await main().catch((error) => {
  complain(error instanceof Error ? error.message : String(error));
  Deno.exit(1);
});
