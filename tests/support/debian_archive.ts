import { join } from "node:path";
import { hostOutput } from "../../tools/host_command.ts";

/** The keys that sign Debian's archive. */
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg";
/** The release from which the tests take packages. */
export const release = "bookworm";

/**
 * Debian's archive, used through a separate folder: the machine's sources and lists are unchanged, nothing is
 * installed, and root is not needed.
 */
export class DebianArchive {
  readonly #folder: string;
  readonly #settings: readonly string[];
  readonly #signal: AbortSignal | undefined;

  private constructor(folder: string, settings: readonly string[], signal: AbortSignal | undefined) {
    this.#folder = folder;
    this.#settings = settings;
    this.#signal = signal;
  }

  /** Downloads the lists of one suite, such as `bookworm`, into `folder`. */
  static async open(folder: string, suite: string, signal?: AbortSignal): Promise<DebianArchive> {
    for (const path of ["lists/partial", "cache/archives/partial"]) {
      await Deno.mkdir(join(folder, path), { recursive: true });
    }
    const source = `deb [signed-by=${keyring}] ${await archiveSite()} ${suite} main\n`;
    await Deno.writeTextFile(join(folder, "sources.list"), source);
    const settings = [
      `Dir::Etc::SourceList=${folder}/sources.list`,
      "Dir::Etc::SourceParts=/dev/null",
      `Dir::State::Lists=${folder}/lists`,
      `Dir::Cache=${folder}/cache`,
      `APT::Architecture=${Deno.build.arch === "aarch64" ? "arm64" : "amd64"}`,
      "Acquire::Retries=3",
      "Acquire::Languages=none",
      // apt's own user could not write into this user's folder.
      `APT::Sandbox::User=${Deno.uid() === 0 ? "root" : ""}`,
    ].flatMap((setting) => ["-o", setting]);
    const archive = new DebianArchive(folder, settings, signal);
    await archive.#run("apt-get", "-qq", "update");
    return archive;
  }

  /** The output of `apt-cache depends` for a package. */
  async depends(name: string): Promise<string> {
    return await this.#run("apt-cache", "depends", name);
  }

  /** Downloads a package and returns its path. */
  async download(name: string): Promise<string> {
    await this.#run("apt-get", "-qq", "download", name);
    const file = [...Deno.readDirSync(this.#folder)].map((entry) => entry.name)
      .find((file) => file.startsWith(`${name}_`) && file.endsWith(".deb"));
    if (file === undefined) {
      throw new Error(`Cannot find the package ${name} because apt-get downloaded nothing`);
    }
    return join(this.#folder, file);
  }

  /** Downloads packages with all their dependencies, as for a machine without any, and returns their paths. */
  async downloadWhole(names: readonly string[]): Promise<readonly string[]> {
    const status = join(this.#folder, "status");
    await Deno.writeTextFile(status, "");
    const flags = ["--yes", "--no-install-recommends", "--download-only"];
    await this.#run("apt-get", "-qq", "-o", `Dir::State::status=${status}`, ...flags, "install", ...names);
    const archives = join(this.#folder, "cache/archives");
    return [...Deno.readDirSync(archives)].filter(({ name }) => name.endsWith(".deb"))
      .map(({ name }) => join(archives, name)).toSorted();
  }

  async #run(program: string, ...args: readonly string[]): Promise<string> {
    const signal = this.#signal === undefined ? {} : { signal: this.#signal };
    return await hostOutput(program, [...this.#settings, ...args], { cwd: this.#folder, ...signal });
  }
}

/** Downloads packages of the release into `folder`, and returns their paths. */
export async function downloadPackages(
  folder: string,
  names: readonly string[],
  signal?: AbortSignal,
): Promise<string[]> {
  const archive = await DebianArchive.open(folder, release, signal);
  const files: string[] = [];
  for (const name of names) files.push(await archive.download(name));
  return files;
}

/** The site from which this machine gets Debian, which may be a mirror. */
async function archiveSite(): Promise<string> {
  const targets = await hostOutput("apt-get", ["indextargets", "--format", "$(SITE) $(RELEASE)"]);
  const site = targets.split("\n").map((line) => line.split(" ")).find(([, of]) => of === release)?.[0];
  if (site === undefined) {
    throw new Error(`Cannot download from Debian because apt has no source of ${release}`);
  }
  return site;
}
