import { readMountTable } from "../../filesystem/mountinfo.ts";
import type { KernelFiles } from "../../host/kernel_files.ts";
import { Libc } from "../../host/libc.ts";
import { SystemProcesses } from "../../host/processes.ts";
import { systemToolPaths, type ToolName } from "../../host/tools.ts";
import type { Clock } from "../../volume/ports/system.ts";

/** How long one step of the clean-up may take, and how long the steps are repeated, in milliseconds. */
const cleanUpMs = 10_000;

/** A new folder for everything that a run on this machine makes, and its removal once nothing is mounted in it any more. */
export class ScratchFolder {
  readonly path: string;
  readonly #clock: Clock;
  readonly #processes: SystemProcesses;

  private constructor(path: string, clock: Clock) {
    this.path = path;
    this.#clock = clock;
    this.#processes = new SystemProcesses({ clock });
  }

  /** Takes an existing folder, to have it removed. */
  static of(path: string, clock: Clock): ScratchFolder {
    return new ScratchFolder(path, clock);
  }

  /** Makes the folder below the machine's folder for temporary files. */
  static async make(
    clock: Clock,
    name: { readonly prefix: string; readonly suffix?: string } = { prefix: "rds-csi-demo-" },
  ): Promise<ScratchFolder> {
    return new ScratchFolder(await Deno.realPath(await Deno.makeTempDir(name)), clock);
  }

  /**
   * Where the kernel's NVMe target can be configured, in the folder, because nothing below /sys may be written
   * directly.
   */
  get nvmetFolder(): string {
    return `${this.path}/configfs/nvmet`;
  }

  /**
   * Mounts the file system for configuring the kernel's NVMe target.
   *
   * @throws {VolumeError} unavailable when the kernel has no such target
   */
  async openNvmet(): Promise<void> {
    const folder = `${this.path}/configfs`;
    await Deno.mkdir(folder);
    await this.#run("mount", ["-t", "configfs", "rds-csi-demo", folder]);
  }

  /**
   * Unmounts and detaches what a failed demo has left in the folder, and removes it. What cannot be removed stays, with
   * the folder, and is returned in words: nothing is ever deleted through a mount.
   */
  async remove(): Promise<string[]> {
    const problems = await isRoots(this.path) ? await this.release() : [];
    if (problems.length > 0) return [...problems, `left for inspection: ${this.path}`];
    await Deno.remove(this.path, { recursive: true });
    return [];
  }

  /**
   * Unmounts and detaches what is in the folder, which stays; returns what could not be. Again and again for a while: the
   * kernel detaches a loop device only once the last process has closed it.
   */
  async release(): Promise<string[]> {
    const kernel = new Libc();
    try {
      for (const end = this.#clock.monotonicMs() + cleanUpMs;;) {
        const problems = await this.#releaseOnce(kernel);
        if (problems.length === 0 || this.#clock.monotonicMs() > end) return problems;
        await this.#clock.sleep(100);
      }
    } finally {
      kernel.close();
    }
  }

  async #releaseOnce(kernel: KernelFiles): Promise<string[]> {
    for (const target of this.#mountPoints(kernel).toReversed()) await this.#run("umount", [target]);
    for (const device of await this.#loopDevices(kernel)) await this.#run("losetup", ["--detach", device]);
    return [
      ...this.#mountPoints(kernel).map((target) => `still mounted: ${target}`),
      ...(await this.#loopDevices(kernel)).map((device) => `still attached: ${device}`),
    ];
  }

  #mountPoints(kernel: KernelFiles): string[] {
    const inside = readMountTable(kernel).filter((entry) => entry.mountPoint.startsWith(this.path + "/"));
    return inside.map((entry) => entry.mountPoint);
  }

  async #loopDevices(kernel: KernelFiles): Promise<string[]> {
    if (!isInstalled("losetup", kernel)) return [];
    const lines = await this.#run("losetup", [
      "--list",
      "--noheadings",
      "--raw",
      "--output",
      "NAME,BACK-FILE",
    ]);
    return lines.split("\n").filter((line) => line.includes(` ${this.path}/`)).map((line) =>
      line.split(" ")[0]!
    );
  }

  async #run(tool: "mount" | "umount" | "losetup", args: string[]): Promise<string> {
    const signal = AbortSignal.timeout(cleanUpMs);
    const { stdout } = await this.#processes.run(tool, {
      args,
      signal,
      subject: this.path,
      timeoutMs: cleanUpMs,
    });
    return stdout;
  }
}

/** What the node half needs and this machine lacks, for people; undefined when nothing is missing. */
export async function missingForNode(
  ownFile: string,
  connector: keyof typeof needs,
): Promise<string | undefined> {
  if (Deno.build.os !== "linux") return "it needs Linux";
  if (!await isRoots(ownFile)) return "it needs root, to attach and mount volumes";
  const { tools, files } = needs[connector];
  return withKernel((kernel) => {
    const missing = [...toolsOfNode, ...tools].filter((tool) => !isInstalled(tool, kernel));
    if (missing.length > 0) return `it needs ${missing.join(", ")}`;
    return files.find(([path]) => kernel.info(path) === undefined)?.[1];
  });
}

/** Whether this process runs as root, by the owner of a file that it made. */
async function isRoots(ownFile: string): Promise<boolean> {
  return (await Deno.stat(ownFile)).uid === 0;
}

const toolsOfNode = ["mount", "umount", "blkid", "blockdev", "mkfs.ext4", "e2fsck", "resize2fs"] as const;

/** What each connector also needs, and the message where that is missing. */
const needs: Readonly<
  Record<
    "loop" | "nvme-tcp" | "initiator",
    { readonly tools: readonly ToolName[]; readonly files: readonly (readonly [string, string])[] }
  >
> = {
  "loop": { tools: ["losetup"], files: [["/dev/loop-control", "it needs loop devices"]] },
  "nvme-tcp": {
    tools: ["nvme"],
    files: [
      ["/dev/nvme-fabrics", "it needs the kernel's NVMe/TCP initiator: modprobe nvme-tcp"],
      ["/sys/module/nvmet_tcp", "it needs the kernel's NVMe/TCP target: modprobe nvmet-tcp"],
    ],
  },
  // For exports of another machine.
  "initiator": {
    tools: ["nvme", "mkfs.xfs", "xfs_growfs"],
    files: [["/dev/nvme-fabrics", "it needs the kernel's NVMe/TCP initiator: modprobe nvme-tcp"]],
  },
};

/** Whether xfs volumes can be shown here. */
export function hasXfsTools(): boolean {
  return withKernel((kernel) => isInstalled("mkfs.xfs", kernel) && isInstalled("xfs_growfs", kernel));
}

function withKernel<Result>(use: (kernel: KernelFiles) => Result): Result {
  const kernel = new Libc();
  try {
    return use(kernel);
  } finally {
    kernel.close();
  }
}

function isInstalled(tool: ToolName, kernel: KernelFiles): boolean {
  return systemToolPaths[tool].some((path) => kernel.info(path) !== undefined);
}

/** Number of CAP_SYS_RESOURCE in the kernel's sets (capabilities(7)). */
const capSysResource = 24n;

/** Whether the kernel lets this process grow a mounted ext4: some sandboxes withhold the capability even from root. */
export function canGrowExt4Online(): boolean {
  const status = withKernel((kernel) => kernel.readText("/proc/self/status")) ?? "";
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`);
  return (effective >> capSysResource & 1n) === 1n;
}
