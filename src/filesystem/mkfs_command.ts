import { VolumeError } from "../volume/errors.ts";
import type { FormatOptions } from "../volume/ports/node_ports.ts";

/**
 * The complete feature set of an ext4 made here: what kernel 5.10 mounts, whatever the tool's defaults are.
 * (orphan_file, a default since e2fsprogs 1.47, needs 5.15.)
 */
const ext4Features = "none,has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize," +
  "sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr";

/** Features of xfs that decide which kernel can mount it, and the first xfsprogs that knows their names. */
const xfsFeatures: readonly { readonly since: string; readonly option: string; readonly features: string }[] =
  [
    { since: "4.16", option: "-m", features: "crc=1,finobt=1,reflink=1,rmapbt=0" },
    { since: "4.16", option: "-i", features: "sparse=1" },
    { since: "5.10", option: "-m", features: "bigtime=1,inobtcount=1" }, // Kernel 5.10 mounts both.
    { since: "5.19", option: "-i", features: "nrext64=0" }, // Needs kernel 5.19.
    { since: "6.10", option: "-i", features: "exchange=0" }, // Needs kernel 6.10.
    { since: "6.10", option: "-n", features: "parent=0" }, // Needs kernel 6.10.
  ];

/** The arguments of mkfs.ext4. Never a force flag. */
export function mkfsExt4Arguments(devicePath: string, options: FormatOptions): readonly string[] {
  const lazy = options.lazy ? 1 : 0;
  const text = mergeOptions([
    ["-m", "0"],
    ["-E", `nodiscard,lazy_itable_init=${lazy},lazy_journal_init=${lazy}`],
    ["-O", ext4Features],
  ], options.extra);
  return ["-q", ...text, ...labelWords(options), devicePath];
}

/** The arguments of that version of mkfs.xfs, such as `6.1`. Never a force flag. */
export function mkfsXfsArguments(
  devicePath: string,
  options: FormatOptions,
  version: string,
): readonly string[] {
  const own = xfsFeatures.filter((feature) => isAtLeast(version, feature.since))
    .map(({ option, features }) => [option, features] as const);
  return ["-q", "-K", ...mergeOptions(own, options.extra), ...labelWords(options), devicePath];
}

/**
 * The version in the output of `mkfs.xfs -V`.
 *
 * @throws {VolumeError} precondition when there is none
 */
export function parseXfsVersion(output: string): string {
  const version = /\bversion ([0-9]+\.[0-9]+)/.exec(output)?.[1];
  if (version !== undefined) return version;
  throw new VolumeError(
    "precondition",
    `Cannot determine the version of mkfs.xfs: output=${output.trim().slice(0, 80)}`,
  );
}

function isAtLeast(version: string, since: string): boolean {
  const [major, minor] = version.split(".").map(Number) as [number, number];
  const [sinceMajor, sinceMinor] = since.split(".").map(Number) as [number, number];
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor);
}

function labelWords(options: FormatOptions): readonly string[] {
  return options.label === undefined ? [] : ["-L", options.label];
}

/**
 * Merges own and extra options into one list with every option once: mke2fs uses only the last of several, and mkfs.xfs
 * refuses a repeated feature. Where both name a feature, the extra one wins.
 */
function mergeOptions(
  own: readonly (readonly [string, string])[],
  extra: readonly string[],
): readonly string[] {
  const values = new Map<string, string>();
  for (const [option, value] of own) {
    values.set(option, [values.get(option), value].filter((part) => part !== undefined).join(","));
  }
  for (let at = 0; at + 1 < extra.length; at += 2) {
    const [option, value] = [extra[at]!, extra[at + 1]!];
    values.set(option, mergeValue(values.get(option), value));
  }
  return [...values].flat();
}

function mergeValue(own: string | undefined, extra: string): string {
  if (own === undefined || !/[a-z]/.test(own)) return extra;
  const named = new Set(extra.split(",").map(featureName));
  return [...own.split(",").filter((item) => !named.has(featureName(item))), extra].join(",");
}

function featureName(item: string): string {
  return item.replace(/^\^/, "").replace(/=.*$/, "");
}
