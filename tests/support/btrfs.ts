// A real Btrfs for tests, on its own loop device; not a part of the simulator itself.
import { hostOutput, isThere } from "../../tools/host_command.ts";
import { loopsUnder, mountsUnder } from "./left_here.ts";

/** Why no Btrfs can be made and mounted here; undefined when one can. */
export const btrfsMissing: string | undefined = whatIsMissing();
if (btrfsMissing !== undefined) say(`ignored: ${btrfsMissing}`);

/** Registers a test that gets a folder on a real Btrfs of 256 MiB; afterwards nothing of it is left on the machine. */
export function btrfsTest(name: string, use: (folder: string) => Promise<void>): void {
  Deno.test({
    name,
    ignore: btrfsMissing !== undefined,
    fn: async () => {
      const scratch = await Deno.makeTempDir({ prefix: "rds-csi-btrfs-" });
      const folder = `${scratch}/mount`;
      try {
        await Deno.mkdir(folder);
        await Deno.writeFile(`${scratch}/image`, new Uint8Array());
        await Deno.truncate(`${scratch}/image`, 256 << 20);
        await run("mkfs.btrfs", "--quiet", `${scratch}/image`);
        await run("mount", "-o", "loop", `${scratch}/image`, folder);
        await use(folder);
      } finally {
        await cleanUp(scratch, folder);
      }
    },
  });
}

/** Runs a command of this machine and returns what it printed; a failure throws. */
export async function run(command: string, ...args: string[]): Promise<string> {
  return (await hostOutput(command, args)).trim();
}

async function cleanUp(scratch: string, folder: string): Promise<void> {
  for (const device of await loopsUnder(`${folder}/`)) await run("losetup", "--detach", device);
  // The kernel detaches the image's loop device with its last mount.
  for (const path of mountsUnder(folder)) await run("umount", path);
  await Deno.remove(scratch, { recursive: true });
}

function whatIsMissing(): string | undefined {
  if (Deno.uid() !== 0) return "they mount a Btrfs, which needs root";
  if (!isThere("/dev/loop-control")) return "they need loop devices (/dev/loop-control)";
  if (!isThere("/usr/sbin/mkfs.btrfs")) return "mkfs.btrfs is not installed (package btrfs-progs)";
  if (!/\tbtrfs$/m.test(Deno.readTextFileSync("/proc/filesystems"))) return "the kernel has no Btrfs";
  return undefined;
}

function say(line: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));
}
