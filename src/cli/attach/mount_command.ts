/** Options with which each file system is mounted without a single write: no log is replayed. */
const options: Readonly<Record<string, string>> = {
  ext2: "ro",
  ext3: "ro,noload",
  ext4: "ro,noload",
  xfs: "ro,norecovery,nouuid",
  btrfs: "ro,rescue=nologreplay",
};

/** The command that mounts a device read-only, by the type that blkid names; undefined where there is none to be had. */
export function mountCommand(device: string, type: string | undefined, folder: string): string | undefined {
  if (type === "crypto_LUKS") return `cryptsetup open --readonly ${device} NAME`;
  if (type === undefined || !Object.hasOwn(options, type)) return undefined;
  return `mkdir -p ${folder} && mount -t ${type} -o ${options[type]},nosuid,nodev ${device} ${folder}`;
}
