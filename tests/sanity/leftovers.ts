import { parseMountinfo } from "../../src/filesystem/mountinfo.ts";

/** Objects that a driver has left in the kernel, below one folder. */
export interface Leftovers {
  /** Mount points, the innermost first. */
  readonly mounts: readonly string[];
  /** Loop devices whose backing file lies in the folder. */
  readonly loops: readonly string[];
}

/** Finds mounts at, and loop devices on, paths below `folder`. */
export async function findLeftovers(folder: string): Promise<Leftovers> {
  const mounts = parseMountinfo(await Deno.readTextFile("/proc/self/mountinfo"))
    .map(({ mountPoint }) => mountPoint).filter((path) => path.startsWith(`${folder}/`)).reverse();
  const { code, stdout } = await run("losetup", [
    "--list",
    "--noheadings",
    "--raw",
    "--output=NAME,BACK-FILE",
  ]);
  if (code !== 0) throw new Error("Cannot list loop devices");
  const loops = stdout.split("\n").map((line) => line.split(" "))
    .filter(([, backing = ""]) => backing.startsWith(`${folder}/`)).map(([name = ""]) => name);
  return { mounts, loops };
}

/** Unmounts and detaches them. Returns those that are still left. */
export async function removeLeftovers(folder: string): Promise<Leftovers> {
  const { mounts, loops } = await findLeftovers(folder);
  for (const mount of mounts) {
    if ((await run("umount", [mount])).code !== 0) await run("umount", ["--lazy", mount]);
  }
  for (const loop of loops) await run("losetup", ["--detach", loop]);
  return await findLeftovers(folder);
}

async function run(program: string, args: string[]): Promise<{ code: number; stdout: string }> {
  const { code, stdout } = await new Deno.Command(program, {
    args,
    stdin: "null",
    stderr: "null",
    signal: AbortSignal.timeout(20_000),
  }).output();
  return { code, stdout: new TextDecoder().decode(stdout) };
}
