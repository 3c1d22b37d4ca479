import { join } from "node:path";
import { hostOutput } from "../../../tools/host_command.ts";

/**
 * Makes an ext4 image with programs, which any number of guests may use at once: programs run much faster from it than
 * from a share. Its files are at /opt/tools.
 *
 * @param files paths of the host by names in the image
 */
export async function makeToolsDisk(
  folder: string,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const content = join(folder, "tools");
  const image = join(folder, "tools.img");
  await Deno.mkdir(content);
  let bytes = 0;
  for (const [name, path] of Object.entries(files)) {
    await Deno.copyFile(path, join(content, name));
    await Deno.chmod(join(content, name), 0o755);
    bytes += (await Deno.stat(path)).size;
  }
  const sizeKiB = Math.ceil(bytes / 1024 * 1.05) + 4096;
  const options = ["-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-N", "64"];
  await hostOutput("mke2fs", [...options, "-d", content, image, `${sizeKiB}k`]);
  await Deno.remove(content, { recursive: true });
  return image;
}
