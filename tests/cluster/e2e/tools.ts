import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findProgram, hostOutput, isFile } from "../../../tools/host_command.ts";
import { e2eBuildFolder, goBuild, linkerFlags, toolsFolder } from "../kit/go_build.ts";
import { type ImageContent, packImage } from "../kit/image.ts";

/** What is built of upstream's, as paths. */
export interface E2eTools {
  /** Kubernetes' `e2e.test`. */
  readonly program: string;
  /** The program of the image that most of its pods run. */
  readonly agnhost: string;
}

const testsPackage = "k8s.io/kubernetes/test/e2e";
const agnhostPackage = "k8s.io/kubernetes/test/images/agnhost";

/** Images of which the storage tests take nothing but a shell and its commands: they are this machine's busybox. */
const shells: readonly string[] = ["busybox", "nginx"];
/** The same with GNU's `dd`, of which they want more than busybox has, and with a shell that prefers it to its own. */
const gnuShells: readonly string[] = ["glibc-dns-testing"];

/** How pods look at their node. */
const nsenter = fileURLToPath(new URL("nsenter.sh", import.meta.url));

/** Where programs are looked for in the images. */
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The tests out of the cache; what is not there is built first. `say` hears of what takes long. */
export async function ensureE2eTools(say: (line: string) => void, signal?: AbortSignal): Promise<E2eTools> {
  const folder = await toolsFolder(e2eBuildFolder);
  const tools = { program: join(folder, "e2e.test"), agnhost: join(folder, "agnhost") };
  const done = join(folder, "done");
  if (!isFile(done)) {
    await Deno.mkdir(folder, { recursive: true });
    await buildPrograms(tools, say, signal);
    await Deno.writeTextFile(done, "");
  }
  return tools;
}

async function buildPrograms(
  { program, agnhost }: E2eTools,
  say: (line: string) => void,
  signal?: AbortSignal,
): Promise<void> {
  const started = performance.now();
  say(`building ${program}; 5 minutes on two cores`);
  const flags = ["-ldflags", await linkerFlags(e2eBuildFolder)];
  await goBuild(e2eBuildFolder, ["build", ...flags, "-o", agnhost, agnhostPackage], signal);
  await goBuild(e2eBuildFolder, ["test", "-c", "-vet=off", ...flags, "-o", program, testsPackage], signal);
  say(`built in ${Math.round((performance.now() - started) / 1000)} s`);
}

/** Packs the images of the tests' pods into a folder, under the names that the tests have for them; answers the archives. */
export async function packE2eImages(tools: E2eTools, folder: string): Promise<readonly string[]> {
  const names = await imageNames(tools.program);
  const called = (program: string) => names.filter((name) => name.includes(`/e2e-test-images/${program}:`));
  const contents: Readonly<Record<string, ImageContent>> = {
    "agnhost.tar": {
      names: called("agnhost"),
      config: { Env: [path], Entrypoint: ["/agnhost"], Cmd: ["pause"] },
      programs: { "agnhost": tools.agnhost, "usr/local/bin/nsenter": nsenter },
    },
    "shells.tar": { names: shells.flatMap(called), config: { Env: [path], Cmd: ["sh"] } },
    "gnu.tar": {
      names: gnuShells.flatMap(called),
      config: { Env: [path], Cmd: ["sh"] },
      programs: { ...await withLibraries("sh"), ...await withLibraries("dd") },
    },
  };
  for (const [file, content] of Object.entries(contents)) await packImage(join(folder, file), content);
  return Object.keys(contents).map((file) => join(folder, file));
}

/** A program of this machine and the libraries that it is linked with, by their paths in an image. */
async function withLibraries(name: string): Promise<Readonly<Record<string, string>>> {
  const program = findProgram(name);
  if (program === undefined) throw new Error(`Cannot pack the image because there is no ${name}`);
  const listed = await hostOutput("ldd", [program]);
  const libraries = [...listed.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].map(([, file = ""]) => file);
  return Object.fromEntries([
    [`bin/${name}`, program],
    ...libraries.map((file) => [file.slice(1), file]),
  ]);
}

/** The names that the tests themselves have for the images of their pods. */
async function imageNames(program: string): Promise<readonly string[]> {
  const printed = await hostOutput(program, ["--list-images"]);
  return printed.split("\n").map((line) => line.trim()).filter((line) => /^\S+\/\S+:\S+$/.test(line));
}
