/** A tool that this driver runs. The set is closed: the build permits exactly these. */
export type ToolName = keyof typeof tools;

interface Tool {
  /** Its Debian package, for the message when it is missing. */
  readonly package: string;
  /** Its possible paths, the likeliest first. */
  readonly paths: readonly string[];
}

const tools = {
  "mount": { package: "mount", paths: inBin("mount") },
  "umount": { package: "mount", paths: inBin("umount") },
  "mount.nfs4": { package: "nfs-common", paths: inSbin("mount.nfs4") },
  "losetup": { package: "mount", paths: inSbin("losetup") },
  "blkid": { package: "util-linux", paths: inSbin("blkid") },
  "blockdev": { package: "util-linux", paths: inSbin("blockdev") },
  "fsfreeze": { package: "util-linux", paths: inSbin("fsfreeze") },
  "fstrim": { package: "util-linux", paths: inSbin("fstrim") },
  "mkfs.ext4": { package: "e2fsprogs", paths: inSbin("mkfs.ext4") },
  "e2fsck": { package: "e2fsprogs", paths: inSbin("e2fsck") },
  "resize2fs": { package: "e2fsprogs", paths: inSbin("resize2fs") },
  "mkfs.xfs": { package: "xfsprogs", paths: inSbin("mkfs.xfs") },
  "xfs_logprint": { package: "xfsprogs", paths: inSbin("xfs_logprint") },
  "xfs_growfs": { package: "xfsprogs", paths: inSbin("xfs_growfs") },
  "nvme": { package: "nvme-cli", paths: inSbin("nvme") },
  "dmsetup": { package: "dmsetup", paths: inSbin("dmsetup") },
  "cryptsetup": { package: "cryptsetup-bin", paths: inSbin("cryptsetup") },
  "realpath": { package: "coreutils", paths: inBin("realpath") },
  "stat": { package: "coreutils", paths: inBin("stat") },
  "sync": { package: "coreutils", paths: inBin("sync") },
  "dd": { package: "coreutils", paths: inBin("dd") },
} as const satisfies Readonly<Record<string, Tool>>;

/** The possible paths of each tool, the likeliest first. */
export type ToolPaths = Readonly<Record<ToolName, readonly string[]>>;

/** The possible paths of every tool on Debian and its derivatives, with and without merged folders. */
export const systemToolPaths: ToolPaths = Object.fromEntries(
  Object.entries(tools).map(([name, tool]) => [name, tool.paths]),
) as Record<ToolName, readonly string[]>;

/** The names of all tools. */
export const allTools = Object.keys(tools) as readonly ToolName[];

/** Every path that may be run, for the permissions of the build. */
export const allToolPaths: readonly string[] = Object.values(tools).flatMap((tool) => [...tool.paths])
  .toSorted();

/** The package to install for a tool. */
export function packageOf(tool: ToolName): string {
  return tools[tool].package;
}

function inBin(name: string): readonly string[] {
  return [`/usr/bin/${name}`, `/bin/${name}`];
}

function inSbin(name: string): readonly string[] {
  return [`/usr/sbin/${name}`, `/sbin/${name}`, `/usr/bin/${name}`];
}
