import type { Random } from "../../volume/ports/system.ts";

/** What the name of everything begins with that a probe makes; eight hex digits follow. */
export const scratchPrefix = "rds-csi-probe-";

const scratchForm = /^rds-csi-probe-[0-9a-f]{8}(?![0-9a-z])/;

/** Whether a slot, or the last part of a path, names something that a probe made. */
export function isScratchName(name: string): boolean {
  return scratchForm.test(name);
}

/**
 * Whether a path lies in a folder, and what lies in the folder itself was made by a probe.
 *
 * @param basePath with one leading slash, as `path`
 */
export function isScratchPath(path: string, basePath: string): boolean {
  return path.startsWith(`${basePath}/`) && isScratchName(path.slice(basePath.length + 1).split("/")[0]!);
}

/** A disk that a probe makes, and its file. */
export interface ScratchDisk {
  readonly slot: string;
  /** With one leading slash. */
  readonly path: string;
}

/** The names of everything that one run of a probe makes. */
export class ScratchNames {
  /** The folder on the router that files are made in, with one leading slash. */
  readonly basePath: string;
  /** The beginning of every name: 22 characters. */
  readonly tag: string;
  #disks = 0;

  constructor(basePath: string, random: Random) {
    this.basePath = basePath;
    const digits = random.bytes(4).toHex();
    this.tag = scratchPrefix + digits;
  }

  /** The name of something, such as `rds-csi-probe-0123abcd-x`. */
  name(suffix: string): string {
    return `${this.tag}-${suffix}`;
  }

  /** The path of a file or a folder in the base path. */
  path(suffix: string): string {
    return `${this.basePath}/${this.name(suffix)}`;
  }

  /** A slot of its own, as short as can be, and a file. */
  disk(suffix: string): ScratchDisk {
    return { slot: this.name((this.#disks++).toString(36)), path: this.path(`${suffix}.img`) };
  }

  /** A slot of exactly `length` characters, at least 24. */
  slotOfLength(length: number): string {
    return `${this.tag}-`.padEnd(length, "z0123456789");
  }

  /** The NQN of an export. */
  nqn(suffix: string): string {
    return `nqn.2000-02.com.mikrotik:${this.name(suffix)}`;
  }
}
