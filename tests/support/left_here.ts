// What is left on this machine below a folder.
import { hostOutput } from "../../tools/host_command.ts";

/** The mount points under a folder, in the kernel's order. */
export function mountsUnder(folder: string): readonly string[] {
  return Deno.readTextFileSync("/proc/self/mountinfo").split("\n").map((line) => line.split(" ")[4] ?? "")
    .filter((mountPoint) => mountPoint.startsWith(folder));
}

/** The loop devices of files under a folder. */
export async function loopsUnder(folder: string): Promise<readonly string[]> {
  const output = await hostOutput("losetup", ["-n", "-O", "NAME,BACK-FILE", "-l"]);
  return output.split("\n").filter((line) => line.includes(folder)).map((line) => line.split(/\s+/)[0]!);
}
