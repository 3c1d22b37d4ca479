import { VolumeError } from "../../errors.ts";

/** The mount flags of a volume capability. */
export interface MountFlags {
  readonly readOnly: boolean;
  /** The flags without `ro` and `rw`. */
  readonly flags: readonly string[];
}

/**
 * Options that would make mount do something other than mount this device here, or that the driver sets itself where
 * they are safe.
 */
const refused: ReadonlySet<string> = new Set([
  ...["bind", "rbind", "move", "remount", "loop", "offset", "sizelimit", "helper", "uhelper"],
  ...["shared", "rshared", "private", "rprivate", "slave", "rslave", "unbindable", "runbindable"],
  ...["noload", "norecovery", "journal_path", "journal_dev", "logdev", "rtdev", "fstype", "sb"],
]);

/** SELinux labels have commas and are quoted (`context="system_u:object_r:t:s0:c1,c2"`). */
const seLinuxLabel = /^(?:context|fscontext|defcontext|rootcontext)="[A-Za-z0-9_:.,-]+"$/;
const plainFlag = /^[A-Za-z0-9_][A-Za-z0-9_.:=/@%+-]*$/;

/**
 * Parses mount flags.
 *
 * @throws {VolumeError} invalid when a flag is not allowed, or both `ro` and `rw` are there. The message names the flag
 *   without its value, which may be sensitive
 */
export function parseMountFlags(flags: readonly string[]): MountFlags {
  for (const word of flags) {
    if (seLinuxLabel.test(word)) continue;
    if (!plainFlag.test(word) || word.length > 256) {
      throw new VolumeError(
        "invalid",
        "Cannot use the mount flags because one has other characters than options have: " +
          `flag=${JSON.stringify(nameOf(word).slice(0, 64))}; give each option as an item of its own`,
      );
    }
    const name = nameOf(word);
    const wouldPanic = word === "errors=panic"; // One lost volume would bring down the whole node.
    const halfReadOnly = /^r[ow]=/.test(word); // `ro=vfs` would leave the file system writable.
    if (refused.has(name) || wouldPanic || halfReadOnly || /^x-mount/i.test(name)) {
      throw new VolumeError("invalid", `Cannot use the mount flags because one is not allowed: flag=${name}`);
    }
  }
  const readOnly = flags.includes("ro");
  if (readOnly && flags.includes("rw")) {
    throw new VolumeError("invalid", "Cannot use the mount flags because they ask for both ro and rw");
  }
  return { readOnly, flags: [...new Set(flags.filter((word) => word !== "ro" && word !== "rw"))] };
}

function nameOf(flag: string): string {
  return flag.replace(/=.*$/s, "");
}
