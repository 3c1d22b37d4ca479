import { join } from "node:path";
import { projectRoot } from "../support/parts.ts";
import type { Search } from "./find.ts";
import { editsOf, type PlantedBug } from "./planted_bugs.ts";

/** What schedules need of the project. */
const searched = ["src", "tools", "tests/fakes", "tests/support", "tests/histories"];

/**
 * Plants a bug in a copy of the sources, and searches there.
 *
 * @param most the number of schedules within which it has to be found
 * @throws {Error} when the text to replace does not occur exactly once, or the copy does not run
 */
export async function plant(bug: PlantedBug, most: number): Promise<Search> {
  return await withPlanted(bug, searched, (copy) => searchIn(copy, 1, most));
}

/**
 * Plants a bug in a copy of some folders, and uses that.
 *
 * @throws {Error} when the text to replace does not occur exactly once; whatever `use` throws
 */
export async function withPlanted<Result>(
  bug: PlantedBug,
  folders: readonly string[],
  use: (copy: string) => Promise<Result>,
): Promise<Result> {
  const copy = await Deno.makeTempDir({ prefix: "rds-csi-planted-" });
  try {
    for (const folder of folders) await copyFolder(join(projectRoot, folder), join(copy, folder));
    for await (const { name, isFile } of Deno.readDir(projectRoot)) {
      if (isFile) await Deno.copyFile(join(projectRoot, name), join(copy, name));
    }
    for (const { file, from, to } of editsOf(bug)) {
      const parts = (await Deno.readTextFile(join(copy, file))).split(from);
      if (parts.length !== 2) {
        throw new Error(`${file} has the text of "${bug.title}" ${parts.length - 1} times`);
      }
      await Deno.writeTextFile(join(copy, file), parts.join(to));
    }
    return await use(copy);
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
}

/** Searches in a separate process, with the sources of a folder. @throws {Error} when the process fails */
export async function searchIn(folder: string, first: number, count: number): Promise<Search> {
  const program = join(folder, "tests/histories/find.ts");
  const args = ["run", "-A", "--no-check", program, String(first), String(count)];
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd: folder }).output();
  const decoder = new TextDecoder();
  if (code !== 0) throw new Error(`Cannot search in ${folder}: ${decoder.decode(stderr)}`);
  return JSON.parse(decoder.decode(stdout));
}

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}
